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
from playwright.sync_api import expect

from tests.browsers import WAIT_MS
from tests.environment import VAR
from toolbench.lab.builtin_data import load
from toolbench.lab.worker.local_services import register
from toolbench.providers.scripted_server import Answer, ScriptedProvider, Seen
from toolbench.running.child_process import Child, Spec
from toolbench.running.database_user import confined

Scripting = Callable[[Callable[[Seen], Answer]], ScriptedProvider]

expect.set_options(timeout=WAIT_MS)


@pytest.fixture
def catalogue(transactional_db: None) -> None:
    """What `make up` loads before the first page is shown."""
    load()


@pytest.fixture(scope="session")
def persona_server() -> Iterator[Mapping[str, str]]:
    """The simulated provider as `make up` starts it; gives its ready line."""
    command = [sys.executable, "-m", "toolbench.providers.simulated"]
    command = confined(command, death_signal=signal.SIGKILL)  # a killed test run leaves no server behind
    child = Child(Spec("simulated", command, os.environ, Path(settings.BASE_DIR), announces=True), VAR)
    assert child.process.stdout is not None
    ready = json.loads(child.process.stdout.readline())
    yield ready
    child.stop()


@pytest.fixture
def personas(catalogue: None, persona_server: Mapping[str, str]) -> None:
    """The personas can be asked."""
    register("simulated", persona_server)


@pytest.fixture
def scripting() -> Iterator[Scripting]:
    """Starts a provider that answers as the given function says."""
    with ExitStack() as started:
        yield lambda play: started.enter_context(ScriptedProvider(play))
