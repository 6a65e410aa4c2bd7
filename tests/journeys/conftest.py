"""What every journey stands on: the catalogue, the simulated provider in a process of its own, scripted providers."""

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
    """Counts the clicks of the journey."""
    counter = ClickCounter()
    for name, count in CLICKS_BY_ACTION.items():
        monkeypatch.setattr(Locator, name, counter.count_calls(getattr(Locator, name), count))
    return counter


@pytest.fixture
def catalogue(transactional_db: None) -> None:
    """What `make up` loads before the first page is shown."""
    load_builtin_data()


@pytest.fixture(scope="session")
def persona_server() -> Iterator[Mapping[str, str]]:
    """The simulated provider as `make up` starts it; gives its ready line."""
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
    """The personas can be asked."""
    register_local_server("simulated", persona_server)


@pytest.fixture
def scripting() -> Iterator[StartScriptedServer]:
    """Starts a provider that answers as the given function says."""
    with ExitStack() as started:
        yield lambda play: started.enter_context(ScriptedServer(play))
