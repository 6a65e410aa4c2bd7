"""What `make up` says of itself when it has started."""

import subprocess
import time
from pathlib import Path

import pytest

from toolbench.installation import ROOT
from toolbench.running.startup import compute_seconds_before


@pytest.mark.parametrize(
    ("said", "seconds"), [("900", 100.0), ("", 0.0), ("soon", 0.0), ("nan", 0.0), ("2000", 0.0), ("-99999999", 0.0)]
)
def test_seconds_before_counts_from_start_of_command(said: str, seconds: float) -> None:
    assert compute_seconds_before({"TOOLBENCH_STARTED_AT": said}, 1000.0) == seconds


def test_seconds_before_without_makefile_is_zero() -> None:
    assert compute_seconds_before({}, 1000.0) == 0.0


def test_make_up_hands_on_when_it_began(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho began $TOOLBENCH_STARTED_AT\n")
    python.chmod(0o755)
    before = int(time.time())
    command = [
        "make",
        "--no-print-directory",
        "up",
        f"BIN={tmp_path}",
        "PYTHON=true",
    ]  # nothing is installed, nothing is started
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert int(printed.removeprefix("began ")) >= before
