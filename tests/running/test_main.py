"""Verbs of `toolbench.running` that need no running processes."""

from pathlib import Path

import pytest

from toolbench.running.__main__ import run_verb


def test_reset_deletes_the_data_behind_a_symbolic_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, var = tmp_path / "disk", tmp_path / "var"
    disk.mkdir()
    (disk / "secret_key").touch()
    var.symlink_to(disk)
    monkeypatch.setenv("TOOLBENCH_VAR", str(var))
    monkeypatch.setenv("YES", "1")

    assert run_verb("reset") == 0
    assert (disk.exists(), var.is_symlink()) == (False, False)


def test_up_explains_a_data_folder_that_cannot_be_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TOOLBENCH_VAR", str(tmp_path / "file" / "var"))

    assert run_verb("up") == 1
    assert "cannot be written (Not a directory): set TOOLBENCH_VAR" in capsys.readouterr().err
