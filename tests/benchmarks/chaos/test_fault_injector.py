"""Faults of real processes: they happen in order and are undone."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from benchmarks.chaos.fault_injector import FaultInjector
from benchmarks.chaos.schedule import FREEZE, KILL, Fault
from benchmarks.chaos.stack import Stack, wait_until

_SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]


class SingleProcessStack(Stack):
    """Stack of one process that stands for every target."""

    def __init__(self) -> None:
        self.disk = None
        self.process = subprocess.Popen(_SLEEPS)

    def find_pids(self, target: str, random: Random) -> list[int]:
        return [self.process.pid]

    @property
    def state(self) -> str:
        """State letter in /proc: S for sleeping, T for stopped."""
        return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture
def stack() -> Iterator[SingleProcessStack]:
    stack = SingleProcessStack()
    yield stack
    stack.process.kill()
    stack.process.wait()


def test_fault_injector_kills_process(stack: SingleProcessStack) -> None:
    injector = FaultInjector(stack, Random(1))

    with injector.inject([Fault(KILL, "web", at=0.0)]):
        pass

    assert stack.process.wait(60) == -9
    assert injector.hit == ["kill web at +0.0 s"]


def test_fault_injector_freezes_during_block_and_thaws_before_end(
    stack: SingleProcessStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    injector = FaultInjector(stack, Random(1))
    undo = injector._undo
    seen = threading.Event()

    def undo_when_seen(fault: Fault) -> None:
        seen.wait(60)
        undo(fault)

    monkeypatch.setattr(injector, "_undo", undo_when_seen)
    with injector.inject([Fault(FREEZE, "web", at=-0.2, seconds=2.0)]):
        wait_until(lambda: stack.state == "T", "the process to be stopped", seconds=60)
        seen.set()

    assert stack.state != "T"
    assert injector.hit == ["freeze web at -0.2 s for 2.0 s"]
    assert injector.missing == []
