"""New files of commands: complete or not there, and never an overwritten file."""

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.lab.interchange.bundle.test_read import make_small_run
from toolbench.lab.interchange.bundle import write
from toolbench.lab.management.new_files import open_new_file


def test_open_new_file_keeps_an_existing_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(FileExistsError), open_new_file(path):
        pass
    assert path.read_bytes() == b"old"


def _write_part(path: Path, error: BaseException) -> None:
    with open_new_file(path) as file:
        file.write(b"part")
        raise error


@pytest.mark.parametrize("error", [OSError("The disk is full."), KeyboardInterrupt()])
def test_open_new_file_deletes_the_file_of_a_failed_block(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "file"
    with pytest.raises(type(error)):
        _write_part(path, error)
    assert not path.exists()


@pytest.mark.django_db
def test_bundle_command_can_be_repeated_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("The disk is full.")

    run, path = make_small_run(), tmp_path / "bundle.zip"
    with monkeypatch.context() as patch:
        patch.setattr(write, "load_known_secrets", fail)
        with pytest.raises(CommandError, match="The disk is full"):
            call_command("bundle", run.pk, out=path)
    call_command("bundle", run.pk, out=path)
    assert path.exists()
