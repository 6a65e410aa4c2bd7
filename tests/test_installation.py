"""Folders of a checkout and of a wheel."""

from pathlib import Path

import pytest

from toolbench import installation
from toolbench.installation import get_var_folder


def test_checkout_keeps_data_beside_the_package() -> None:
    assert get_var_folder({"HOME": "/home/me"}) == Path(installation.__file__).resolve().parents[1] / "var"


def test_named_folder_wins_and_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert get_var_folder({"TOOLBENCH_VAR": "data"}) == tmp_path / "data"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({"XDG_DATA_HOME": "/data"}, Path("/data/toolbench")), ({}, Path.home() / ".local/share/toolbench")],
)
def test_wheel_keeps_data_in_the_folder_of_the_user(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: Path
) -> None:
    monkeypatch.setattr(installation, "IS_WHEEL", True)

    assert get_var_folder(environment) == expected
