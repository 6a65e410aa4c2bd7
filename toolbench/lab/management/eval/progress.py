"""Watching a run from the command line: a progress bar, and what Ctrl-C means."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from toolbench.lab.metrics.tally import Tally, tally
from toolbench.lab.models import Run

_WORDS = {
    "passed": "passed",
    "failed": "failed",
    "infra": "infrastructure",
    "cancelled": "cancelled",
    "running": "running",
}


@dataclass(slots=True)
class Interrupts:
    """Counts Ctrl-C instead of dying of it."""

    count: int = 0
    _came: threading.Event = field(default_factory=threading.Event)

    def wait(self, seconds: float) -> None:
        """Until the time is up or the next one comes."""
        self._came.wait(seconds)
        self._came.clear()

    def take(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self._came.set()


@contextmanager
def counted_interrupts() -> Iterator[Interrupts]:
    """In the main thread only."""
    interrupts = Interrupts()
    before = signal.signal(signal.SIGINT, interrupts.take)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(frozen=True, slots=True)
class RunBar:
    """The bar of one run; `look` reads its cells."""

    run: Run
    progress: Progress
    task: TaskID

    def look(self) -> None:
        sums = tally(self.run.cells.all())
        self.progress.update(self.task, completed=sums.done, total=sums.total, words=_words(sums))


@contextmanager
def run_bar(run: Run, out: TextIO, *, silent: bool) -> Iterator[RunBar]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[words]}"))
    console = Console(file=out, highlight=False)
    with Progress(*columns, TimeElapsedColumn(), TextColumn("elapsed"), console=console, disable=silent) as progress:
        bar = RunBar(run, progress, progress.add_task(f"Run {run.pk}", total=run.trial_count, words=""))
        yield bar
        bar.look()


def _words(sums: Tally) -> str:
    counts = ((getattr(sums, name), word) for name, word in _WORDS.items())
    return ", ".join(f"{count:,} {word}" for count, word in counts if count)
