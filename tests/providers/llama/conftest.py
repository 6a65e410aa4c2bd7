import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from toolbench.providers.ready_line import Announcement

PATIENCE = 60


@contextmanager
def llama(*arguments: str) -> Iterator[tuple[Announcement, "subprocess.Popen[str]"]]:
    """A local server as the supervisor starts it: one JSON line when ready, an end by SIGTERM."""
    command = [sys.executable, "-m", "toolbench.providers.llama", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate(timeout=PATIENCE)[1]
            yield Announcement(**json.loads(line)), process
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)


@pytest.fixture(scope="session")
def own() -> Iterator[Announcement]:
    with llama("--template", "own") as (announcement, _):
        yield announcement


@pytest.fixture(scope="session")
def tools() -> Iterator[Announcement]:
    with llama("--template", "tools") as (announcement, _):
        yield announcement
