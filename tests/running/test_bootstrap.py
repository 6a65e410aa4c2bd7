"""The virtual environment of `make up`: made once, made anew only for another list of packages."""

import subprocess
import sys
from pathlib import Path

import pytest

from toolbench.running import bootstrap

_SCRIPT = Path(bootstrap.__file__)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with a blank in its path that asks for no package at all; the tests follow its life."""
    root = tmp_path_factory.mktemp("bootstrap") / "my checkout"
    (root / "toolbench/running").mkdir(parents=True)
    (root / "requirements").mkdir()
    (root / "requirements/run.txt").write_text("# nothing\n")
    (root / "toolbench/running/bootstrap.py").write_text(_SCRIPT.read_text())
    return root


def _make(checkout: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(checkout / "toolbench/running/bootstrap.py"), "requirements/run.txt"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_environment_is_made_once(checkout: Path) -> None:
    first, second = _make(checkout), _make(checkout)

    assert first.returncode == 0, first.stderr
    assert (checkout / ".venv/bin/python").exists()
    assert first.stdout.startswith("Installing packages")
    assert second.stdout == ""


def test_changed_requirements_are_installed_and_failure_is_one_sentence(checkout: Path) -> None:
    (checkout / "requirements/run.txt").write_text("without-a-hash==1.0\n")

    failed = _make(checkout)

    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1
    assert str(checkout / "var/log/pip.log") in failed.stderr


def test_a_failed_installation_is_tried_again_the_next_time(checkout: Path) -> None:
    (checkout / "requirements/run.txt").write_text("without-a-hash==1.0\n")
    failed = _make(checkout)
    (checkout / "requirements/run.txt").write_text("# mended\n")

    assert failed.returncode == 1
    assert _make(checkout).returncode == 0
