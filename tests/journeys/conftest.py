"""Fixtures of the journeys: built-in data, the simulated provider in its own process, scripted providers."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Locator, expect

from tests.browsers import TIMEOUT_MS
from tests.environment import VAR_FOLDER
from tests.journeys.clicks import CLICKS_BY_ACTION, ClickCounter
from toolbench.lab.builtin_data import load_builtin_data
from toolbench.lab.worker.local_servers import register_local_server
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer
from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.database_user import build_confined_command

StartScriptedServer = Callable[[Callable[[ReceivedRequest], ScriptedReply]], ScriptedServer]

expect.set_options(timeout=TIMEOUT_MS)


@pytest.fixture
def clicks(monkeypatch: pytest.MonkeyPatch) -> ClickCounter:
    """Counter of the clicks of the journey."""
    counter = ClickCounter()
    for name, count in CLICKS_BY_ACTION.items():
        monkeypatch.setattr(Locator, name, counter.count_calls(getattr(Locator, name), count))
    return counter


@pytest.fixture
def catalogue(transactional_db: None) -> None:
    """Load the data that `make up` loads before it serves the first page."""
    load_builtin_data()


@pytest.fixture(scope="session")
def persona_server() -> Iterator[Mapping[str, str]]:
    """Start the simulated provider as `make up` does, and yield its ready line."""
    command = [sys.executable, "-m", "toolbench.providers.simulated"]
    command = build_confined_command(command, death_signal=signal.SIGKILL)  # a killed test run leaves no server behind
    child = ChildProcess(
        ChildSpec("simulated", command, os.environ, Path(settings.BASE_DIR), has_ready_line=True), VAR_FOLDER
    )
    assert child.process.stdout is not None
    ready = json.loads(child.process.stdout.readline())
    yield ready
    child.stop()


@pytest.fixture
def personas(catalogue: None, persona_server: Mapping[str, str]) -> None:
    """Make the simulated models available to runs."""
    register_local_server("simulated", persona_server)


@pytest.fixture
def start_server() -> Iterator[StartScriptedServer]:
    """Function that starts a provider; the provider answers with the given function."""
    with ExitStack() as started:
        yield lambda reply: started.enter_context(ScriptedServer(reply))
