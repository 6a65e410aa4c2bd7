import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from toolbench.providers.ready_line import ReadyLine

TIMEOUT_SECONDS = 60


@contextmanager
def run_local_server(*arguments: str) -> Iterator[tuple[ReadyLine, "subprocess.Popen[str]"]]:
    """A local server as the supervisor starts it: one JSON line when ready, an end by SIGTERM."""
    command = [sys.executable, "-m", "toolbench.providers.llama", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate(timeout=TIMEOUT_SECONDS)[1]
            yield ReadyLine(**json.loads(line)), process
        finally:
            process.terminate()
            process.communicate(timeout=TIMEOUT_SECONDS)


@pytest.fixture(scope="session")
def own() -> Iterator[ReadyLine]:
    with run_local_server("--template", "own") as (announcement, _):
        yield announcement


@pytest.fixture(scope="session")
def tools() -> Iterator[ReadyLine]:
    with run_local_server("--template", "tools") as (announcement, _):
        yield announcement
