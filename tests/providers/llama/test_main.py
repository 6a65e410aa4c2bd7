"""The process that serves a local model, without a model: how it refuses to start."""

import subprocess
import sys
from pathlib import Path

import pytest

from toolbench.providers.ready_line import START_FAILED_EXIT_CODE

REPOSITORY = Path(__file__).parents[3]


def start(*arguments: str, python_path: Path = REPOSITORY) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "toolbench.providers.llama", "--template", "own", *arguments]
    environment = {"PYTHONPATH": f"{python_path}:{REPOSITORY}", "PATH": ""}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)


def sentence_of(ended: "subprocess.CompletedProcess[str]") -> str:
    assert ended.returncode == START_FAILED_EXIT_CODE
    assert ended.stdout == ""
    lines = ended.stderr.strip().splitlines()
    assert len(lines) == 1, ended.stderr
    return lines[0]


def test_a_missing_model_file_is_one_sentence() -> None:
    assert "There is no model file at /nowhere/model.gguf" in sentence_of(start("--gguf", "/nowhere/model.gguf"))


def test_a_file_that_is_no_model_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "notes with spaces.gguf"
    file.write_text("not a model")
    assert "notes with spaces.gguf is not a GGUF file" in sentence_of(start("--gguf", str(file)))


def test_a_broken_model_file_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF" + b"\x00" * 64)
    assert "could not load broken.gguf" in sentence_of(start("--gguf", str(file)))


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("libgomp.so.1: cannot open shared object file: No such file or directory", "apt-get install libgomp1"),
        ("No module named 'xllamacpp'", "everything else works without it"),
    ],
)
def test_a_missing_library_is_one_sentence(tmp_path: Path, why: str, said: str) -> None:
    (tmp_path / "xllamacpp.py").write_text(f"raise ImportError({why!r})")
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    assert said in sentence_of(start("--gguf", str(file), python_path=tmp_path))
