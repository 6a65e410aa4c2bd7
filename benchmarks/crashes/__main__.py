"""Crashes at every step of workers, probes and scheduler: killed, cut off or frozen.

`python -m benchmarks.crashes --schedules 10000 --seed 1` starts a PostgreSQL with `fsync` and `synchronous_commit` in a
temporary folder, plays the schedules in several processes, and prints a table. The exit code is 1 if a schedule broke
an invariant or a process failed.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.crashes.database import DurableDatabase
from benchmarks.crashes.table import render_table
from toolbench.installation import ROOT


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crashes", description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000, help="largest number of schedules (default 10,000)")
    parser.add_argument("--seed", type=int, default=1, help="for the order of the schedules (default 1)")
    parser.add_argument(
        "--processes", type=int, default=4, help="processes that play schedules at the same time (default 4)"
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="time after which no schedule begins (default 60)")
    parser.add_argument(
        "--out", type=Path, help="file for a JSON line of each schedule; a schedule with a line is not played again"
    )
    return parser.parse_args()


class _Record:
    """Results of schedules, a line each, which are added to a file. Thread-safe."""

    def __init__(self, file: Path) -> None:
        self.file = file
        texts = file.read_text().splitlines() if file.exists() else []
        self.lines: list[dict[str, Any]] = [json.loads(text) for text in texts]
        self.lines_before = len(self.lines)
        self._lock = threading.Lock()

    def add(self, text: str) -> None:
        """Add a line, and print it if the schedule broke an invariant."""
        line = json.loads(text)
        with self._lock, self.file.open("a") as output:
            output.write(text)
            self.lines.append(line)
            if line["violations"]:
                print(text, end="", flush=True)


class _Part:
    """A process that plays a part of the schedules on a database of its own."""

    def __init__(self, database: DurableDatabase, number: int, arguments: argparse.Namespace, record: _Record) -> None:
        numbers = map(str, (arguments.seed, number, arguments.processes, arguments.schedules))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.crashes.play", *numbers, str(record.file.resolve())],
            cwd=ROOT,
            env=database.build_environment(number),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._record = record
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout
        for text in self._process.stdout:
            self._record.add(text)

    def wait(self, until: float) -> int:
        """Wait until it ends, ask it to stop at the time `until`, and return its exit code."""
        self._thread.join(max(0.0, until - time.monotonic()))
        assert self._process.stdin
        self._process.stdin.close()
        self._thread.join()
        return self._process.wait()


def main() -> int:
    arguments = _read_arguments()
    began = time.monotonic()
    with DurableDatabase(arguments.processes) as database:
        record = _Record(arguments.out or database.folder / "schedules.jsonl")
        parts = [_Part(database, number, arguments, record) for number in range(arguments.processes)]
        codes = [part.wait(began + 60 * arguments.minutes) for part in parts]
    played = [line for line in record.lines if line["point"]]
    missed = sum(not line["was_hit"] for line in played)
    now = sum(line["point"] is not None for line in record.lines[record.lines_before :])
    minutes = (time.monotonic() - began) / 60
    print(render_table(record.lines))
    print(f"\n{now:,} schedules in {minutes:.1f} minutes, {len(played):,} in all; {missed:,} ended before their fault.")
    return int(any(codes) or any(line["violations"] for line in record.lines))


if __name__ == "__main__":
    sys.exit(main())
