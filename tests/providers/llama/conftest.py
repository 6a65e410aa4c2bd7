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
    """Run a local server as the supervisor does: it prints one ready line and ends by SIGTERM."""
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
def own_server() -> Iterator[ReadyLine]:
    with run_local_server("--template", "own") as (ready_line, _):
        yield ready_line


@pytest.fixture(scope="session")
def tools_server() -> Iterator[ReadyLine]:
    with run_local_server("--template", "tools") as (ready_line, _):
        yield ready_line
