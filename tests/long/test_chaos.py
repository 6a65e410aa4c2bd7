"""Ten rounds of chaos on a whole stack: a round that found something is a failed test that says what."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.chaos.round_file import describe
from tests.wait import wait_until
from toolbench.installation import ROOT
from toolbench.running.database_user import build_confined_command

pytestmark = pytest.mark.long

ROUNDS = 10
PATIENCE_SECONDS = 600  # for one round; a stuck one takes a minute and a new stack
SEED = 1

Played = Callable[[int], dict[str, Any]]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Wait for the record of a round; all rounds are played on one stack, one after the other."""
    folder = tmp_path_factory.mktemp("chaos")
    out = folder / "rounds.jsonl"
    command = [sys.executable, "-m", "benchmarks.chaos", "--rounds", str(ROUNDS), "--seed", str(SEED)]
    with (folder / "said.txt").open("wb") as said:
        ending_with_us = build_confined_command([*command, "--out", str(out)], death_signal=signal.SIGTERM)
        process = subprocess.Popen(ending_with_us, cwd=ROOT, stdout=said, stderr=said)

    def read_said() -> str:
        return (folder / "said.txt").read_text()

    def wait_for(number: int) -> dict[str, Any]:
        def is_written() -> bool:
            has_ended = process.poll() is not None
            is_so = number in _read(out)
            assert is_so or not has_ended, f"the benchmark ended before round {number}:\n{read_said()}"
            return is_so

        def describe() -> str:
            return f"round {number} did not end:\n{read_said()}"

        wait_until(is_written, every=0.5, seconds=PATIENCE_SECONDS, describe=describe)
        return _read(out)[number]

    yield wait_for
    if len(_read(out)) < ROUNDS:
        process.terminate()
    process.wait()


@pytest.mark.parametrize("number", range(1, ROUNDS + 1))
def test_chaos_round_breaks_no_invariant(played: Played, number: int) -> None:
    record = played(number)

    assert record["violations"] == [], describe(record)


def _read(path: Path) -> dict[int, dict[str, Any]]:
    """The rounds written so far, by number; a line that is being written is left for the next time."""
    if not path.exists():
        return {}
    lines = path.read_text().splitlines(keepends=True)
    records = [json.loads(line) for line in lines if line.endswith("\n")]
    return {record["number"]: record for record in records}
