"""The record of rounds, one JSON object a line, so that a run of the benchmark goes on where it stopped; and its
summary."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.chaos.schedule import FREEZE, KILL, PROCESSES

RoundRecord = Mapping[str, Any]


class SeedMismatchError(Exception):
    """The file holds rounds of another seed; the text says so."""


class RoundFile:
    """Rounds that were played, kept in a file."""

    def __init__(self, path: Path, seed: int) -> None:
        self._path = path
        self._seed = seed

    def read(self) -> list[RoundRecord]:
        """Return the rounds played so far. A last line that was cut off is dropped. Raises SeedMismatchError."""
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
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def logs(self, number: int) -> Path:
        """Return the folder beside the file for the logs of a round that found something."""
        return self._path.with_suffix(".logs") / f"round-{number}"


def list_rounds_left(played: Iterable[RoundRecord], rounds: int) -> list[int]:
    """Return the numbers of the rounds from 1 to `rounds` that were not played yet."""
    done = {record["number"] for record in played}
    return [number for number in range(1, rounds + 1) if number not in done]


def summarise(played: Sequence[RoundRecord]) -> str:
    """Return one Markdown table of all rounds."""
    rows = [
        ("rounds", len(played)),
        ("processes killed", _count_faults(played, KILL)),
        ("processes frozen", _count_faults(played, FREEZE)),
        ("disk full", sum("fill" in hit.split()[:1] for record in played for hit in record["hit"])),
        ("runs with poisoned answers", sum(run["poisoned"] for record in played for run in record["runs"])),
        ("runs", sum(len(record["runs"]) for record in played)),
        ("trials", sum(sum(run["outcomes"].values()) for record in played for run in record["runs"])),
        ("trials tried again after a lost lease", _sum_runs(played, "executions_lost")),
        ("requests counted at the provider", _sum_runs(played, "sent")),
        ("cells recounted", sum(record["cells"] for record in played)),
        *_count_violations(played),
        ("seconds a round, median and most", _summarise_seconds(played)),
    ]
    return "\n".join(["| what | count |", "|---|---|", *(f"| {what} | {count} |" for what, count in rows)])


def describe(record: RoundRecord) -> str:
    """Return one line for one round, and one more for each violation."""
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
    """Return for each kind in how many rounds it was found."""
    found = Counter(kind for record in played for kind in {violation["kind"] for violation in record["violations"]})
    kinds = {
        "lost": "rounds with a lost trial",
        "doubled": "rounds with a trial that ended twice",
        "stuck": "rounds with a stuck run",
        "own error": "rounds with an infrastructure error caused by ourselves",
        "cell": "rounds with a cell unlike its recount",
        "limit": "rounds with more requests sent than reserved",
        "queued": "rounds with trials queued without a reason",
        "steps": "rounds with a finished trial that misses steps",
    }
    return [(words, found[kind]) for kind, words in kinds.items()]


def _sum_runs(played: Sequence[RoundRecord], name: str) -> int:
    return sum(run[name] or 0 for record in played for run in record["runs"])


def _summarise_seconds(played: Sequence[RoundRecord]) -> str:
    seconds = [record["seconds"] for record in played]
    return f"{median(seconds):.1f}, {max(seconds):.1f}" if seconds else "none"
