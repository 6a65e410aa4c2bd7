"""Progress bar of a run on the command line, and handling of Ctrl-C."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from toolbench.lab.metrics.tally import Tally, tally_cells
from toolbench.lab.models import Run

SECONDS_BETWEEN_LINES = 10.0
_LABEL_BY_COUNTER = {
    "passed": "passed",
    "failed": "failed",
    "infra": "infrastructure",
    "cancelled": "cancelled",
    "running": "running",
}


@dataclass(slots=True)
class InterruptCounter:
    """Counter of Ctrl-C. In a block of `count_interrupts`, Ctrl-C does not end the process."""

    count: int = 0
    _received: threading.Event = field(default_factory=threading.Event)

    def wait(self, seconds: float) -> None:
        """Wait for this time, or until Ctrl-C is pressed; return at once if it was pressed since the last wait."""
        self._received.wait(seconds)
        self._received.clear()

    def handle_signal(self, number: int, frame: FrameType | None) -> None:
        """Count one Ctrl-C and end the current wait."""
        self.count += 1
        self._received.set()


@contextmanager
def count_interrupts() -> Iterator[InterruptCounter]:
    """Count Ctrl-C during the block instead of ending the process. Call it in the main thread only."""
    interrupts = InterruptCounter()
    previous_handler = signal.signal(signal.SIGINT, interrupts.handle_signal)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, previous_handler)


@dataclass(slots=True)
class RunProgressBar:
    """Progress bar of one run.

    In a file or pipe, where a bar appears only at the end, lines of text are printed instead, at least
    SECONDS_BETWEEN_LINES apart.

    Attributes:
        next_line_at: monotonic time from which the next line is due.
    """

    run: Run
    progress: Progress
    task: TaskID
    next_line_at: float = 0.0

    def update(self) -> None:
        """Read the run's cells and show their counts."""
        tally = tally_cells(self.run.cells.all())
        counts = _describe_counts(tally)
        self.progress.update(self.task, completed=tally.ended, total=tally.trial_count, words=counts)
        if self.progress.console.is_terminal or self.progress.disable or time.monotonic() < self.next_line_at:
            return
        self.next_line_at = time.monotonic() + SECONDS_BETWEEN_LINES
        line = f"Run {self.run.pk}: {tally.ended:,} of {tally.trial_count:,} trials. {counts}"
        self.progress.console.print(line.strip(), soft_wrap=True)


@contextmanager
def show_progress_bar(run: Run, out: TextIO, *, silent: bool) -> Iterator[RunProgressBar]:
    """Show a progress bar on `out` during the block, unless `silent` is True. Call its `update` to refresh it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[words]}"))
    console = Console(file=out, highlight=False)
    with Progress(*columns, TimeElapsedColumn(), TextColumn("elapsed"), console=console, disable=silent) as progress:
        bar = RunProgressBar(run, progress, progress.add_task(f"Run {run.pk}", total=run.trial_count, words=""))
        yield bar
        bar.update()


def _describe_counts(tally: Tally) -> str:
    counts = ((getattr(tally, name), label) for name, label in _LABEL_BY_COUNTER.items())
    return ", ".join(f"{count:,} {label}" for count, label in counts if count)
