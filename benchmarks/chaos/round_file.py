"""File of the rounds played, one JSON object per line, and its summary.

The benchmark continues the file: a round that it holds is not played again.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.chaos.schedule import FREEZE, KILL, PROCESSES

RoundRecord = Mapping[str, Any]


class SeedMismatchError(Exception):
    """The file holds rounds of another seed."""


class RoundFile:
    """File of the rounds of one seed; it need not exist."""

    def __init__(self, path: Path, seed: int) -> None:
        self._path = path
        self._seed = seed

    def read(self) -> list[RoundRecord]:
        """Return the rounds played so far. A truncated last line is deleted from the file.

        Raises:
            SeedMismatchError: a round has another seed.
        """
        if not self._path.exists():
            return []
        lines = self._path.read_text().splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):
            del lines[-1]
            self._path.write_text("".join(lines))
        played: list[RoundRecord] = [json.loads(line) for line in lines]
        if other := {record["seed"] for record in played} - {self._seed}:
            raise SeedMismatchError(f"{self._path} holds rounds of seed {min(other)}: name another file with --out.")
        return played

    def append(self, record: RoundRecord) -> None:
        """Add a round."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def get_log_folder(self, number: int) -> Path:
        """Return the folder beside the file for the logs of a round."""
        return self._path.with_suffix(".logs") / f"round-{number}"


def list_rounds_left(played: Iterable[RoundRecord], rounds: int) -> list[int]:
    """Return the numbers from 1 to `rounds` of the rounds that are not played yet."""
    done = {record["number"] for record in played}
    return [number for number in range(1, rounds + 1) if number not in done]


def summarise(played: Sequence[RoundRecord]) -> str:
    """Return a Markdown table of all rounds."""
    rows = [
        ("rounds", len(played)),
        ("processes killed", _count_faults(played, KILL)),
        ("processes frozen", _count_faults(played, FREEZE)),
        ("disk full", sum("fill" in hit.split()[:1] for record in played for hit in record["hit"])),
        ("runs with poisoned answers", sum(run["poisoned"] for record in played for run in record["runs"])),
        ("runs", sum(len(record["runs"]) for record in played)),
        ("trials", sum(sum(run["outcomes"].values()) for record in played for run in record["runs"])),
        ("trials executed again after a lost lease", _sum_runs(played, "executions_lost")),
        ("requests counted at the provider", _sum_runs(played, "sent")),
        ("cells recounted", sum(record["cells"] for record in played)),
        *_count_violations(played),
        ("seconds per round, median and maximum", _summarise_seconds(played)),
    ]
    return "\n".join(["| figure | count |", "|---|---|", *(f"| {name} | {count} |" for name, count in rows)])


def describe(record: RoundRecord) -> str:
    """Return a line for a round, and a line for each of its violations."""
    poison = f"; poison: {record['poison']}" if record["poison"] else ""
    trials = sum(sum(run["outcomes"].values()) for run in record["runs"])
    line = f"round {record['number']}: {trials} trials, {record['seconds']:.1f} s; {', '.join(record['hit'])}{poison}"
    wrong = [f"  {found['kind']}, run {found['run_id']}: {found['text']}" for found in record["violations"]]
    return "\n".join([line, *wrong])


def _count_faults(played: Sequence[RoundRecord], kind: str) -> str:
    hits = [hit.split() for record in played for hit in record["hit"]]
    counts = Counter(words[1] for words in hits if words[0] == kind)
    named = (*PROCESSES, *sorted(counts.keys() - set(PROCESSES)))
    return f"{counts.total()} ({', '.join(f'{name} {counts[name]}' for name in named)})"


def _count_violations(played: Sequence[RoundRecord]) -> list[tuple[str, int]]:
    """Return a label and the number of rounds with a violation for each kind."""
    found = Counter(kind for record in played for kind in {violation["kind"] for violation in record["violations"]})
    labels = {
        "lost": "rounds with a lost trial",
        "doubled": "rounds with a trial that ended twice",
        "stuck": "rounds with a stuck run",
        "own error": "rounds with an infrastructure error that no provider caused",
        "cell": "rounds with a cell that differs from its recount",
        "limit": "rounds with more requests sent than reserved",
        "queued": "rounds with trials queued without a reason",
        "steps": "rounds with a finished trial without all of its steps",
        "job failure": "rounds with a failed background job",
    }
    return [(label, found[kind]) for kind, label in labels.items()]


def _sum_runs(played: Sequence[RoundRecord], name: str) -> int:
    return sum(run[name] or 0 for record in played for run in record["runs"])


def _summarise_seconds(played: Sequence[RoundRecord]) -> str:
    seconds = [record["seconds"] for record in played]
    return f"{median(seconds):.1f}, {max(seconds):.1f}" if seconds else "none"
