"""The file of rounds is continued, and its summary counts what is in it."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.chaos.round_file import RoundFile, SeedMismatchError, describe, list_rounds_left, summarise


def record(number: int, **fields: Any) -> dict[str, Any]:
    run = {"run_id": 1, "sent": 12, "poisoned": False, "executions_lost": 2, "outcomes": {"pass": 4, "fail": 1}}
    whole = {
        "number": number,
        "seed": 1,
        "hit": ["kill worker-1 at +0.4 s"],
        "poison": "",
        "runs": [run],
        "cells": 3,
        "violations": [],
        "seconds": 4.0 + number,
    }
    return whole | fields


def violation(kind: str) -> dict[str, Any]:
    return {"kind": kind, "run_id": 1, "text": "trial 4 ended 2 times: pass, pass"}


def test_round_file_is_read_as_written(tmp_path: Path) -> None:
    file = RoundFile(tmp_path / "var" / "rounds.jsonl", seed=1)
    file.append(record(1))
    file.append(record(2))

    assert file.read() == [record(1), record(2)]


def test_round_file_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert RoundFile(tmp_path / "none.jsonl", seed=1).read() == []


def test_round_file_drops_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    file = RoundFile(path, seed=1)
    file.append(record(1))
    with path.open("a") as cut:
        cut.write('{"number": 2, "se')

    assert file.read() == [record(1)]
    file.append(record(2))
    assert file.read() == [record(1), record(2)]


def test_round_file_of_another_seed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    RoundFile(path, seed=1).append(record(1))

    with pytest.raises(SeedMismatchError, match=r"seed 1: name another file with --out"):
        RoundFile(path, seed=2).read()


def test_rounds_left_are_those_not_played() -> None:
    assert list_rounds_left([record(1), record(3)], 5) == [2, 4, 5]
    assert list_rounds_left([record(1), record(2)], 2) == []


def test_summary_counts_trials_faults_and_violations() -> None:
    wrong = record(
        2, hit=["freeze web at +1.0 s for 2.0 s", "fill wal at +0.2 s"], violations=[violation("doubled")] * 3
    )

    lines = summarise([record(1), wrong]).splitlines()

    assert "| rounds | 2 |" in lines
    assert "| trials | 10 |" in lines
    assert "| requests counted at the provider | 24 |" in lines
    assert "| disk full | 1 |" in lines
    assert "| rounds with a trial that ended twice | 1 |" in lines
    assert "| rounds with a lost trial | 0 |" in lines
    assert "| seconds a round, median and most | 5.5, 6.0 |" in lines
    assert any(line.startswith("| processes killed | 1 (") and "worker-1 1" in line for line in lines)
    assert any(line.startswith("| processes frozen | 1 (") and "web 1" in line for line in lines)


def test_summary_of_no_round_is_a_table() -> None:
    assert "| rounds | 0 |" in summarise([])


def test_description_names_each_violation() -> None:
    told = describe(record(2, poison="usage NaN", violations=[violation("doubled")]))

    assert told.splitlines() == [
        "round 2: 5 trials, 6.0 s; kill worker-1 at +0.4 s; poison: usage NaN",
        "  doubled, run 1: trial 4 ended 2 times: pass, pass",
    ]
