"""Tests of the process that serves a local model, without a model: how it refuses to start."""

import subprocess
import sys
from pathlib import Path

import pytest

from toolbench.providers.ready_line import START_FAILED_EXIT_CODE

REPOSITORY = Path(__file__).parents[3]


def run_main(*arguments: str, python_path: Path = REPOSITORY) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "toolbench.providers.llama", "--template", "own", *arguments]
    environment = {"PYTHONPATH": f"{python_path}:{REPOSITORY}", "PATH": ""}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)


def read_sentence(completed: "subprocess.CompletedProcess[str]") -> str:
    assert completed.returncode == START_FAILED_EXIT_CODE
    assert completed.stdout == ""
    lines = completed.stderr.strip().splitlines()
    assert len(lines) == 1, completed.stderr
    return lines[0]


def test_main_missing_model_file_is_one_sentence() -> None:
    assert "There is no model file at /nowhere/model.gguf" in read_sentence(run_main("--gguf", "/nowhere/model.gguf"))


def test_main_path_that_cannot_be_read_is_one_sentence() -> None:
    assert "cannot be read (File name too long)" in read_sentence(run_main("--gguf", "x" * 300))


def test_main_file_that_is_no_model_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "notes with spaces.gguf"
    file.write_text("not a model")
    assert "notes with spaces.gguf is not a GGUF file" in read_sentence(run_main("--gguf", str(file)))


def test_main_broken_model_file_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF" + b"\x00" * 64)
    assert "could not load broken.gguf" in read_sentence(run_main("--gguf", str(file)))


@pytest.mark.parametrize(
    ("cause", "advice"),
    [
        ("libgomp.so.1: cannot open shared object file: No such file or directory", "apt-get install libgomp1"),
        ("No module named 'xllamacpp'", "everything else works without it"),
    ],
)
def test_main_missing_library_is_one_sentence(tmp_path: Path, cause: str, advice: str) -> None:
    (tmp_path / "xllamacpp.py").write_text(f"raise ImportError({cause!r})")
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    assert advice in read_sentence(run_main("--gguf", str(file), python_path=tmp_path))
