"""Ten rounds of chaos on a complete stack, with a test for each round."""

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
PATIENCE_SECONDS = 600  # for one round; a stuck round takes a minute and a new stack
SEED = 1

RoundReader = Callable[[int], dict[str, Any]]


@pytest.fixture(scope="module")
def read_round(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RoundReader]:
    """Return a function that waits for the record of a round; all rounds run on one stack in order."""
    folder = tmp_path_factory.mktemp("chaos")
    out = folder / "rounds.jsonl"
    command = [sys.executable, "-m", "benchmarks.chaos", "--rounds", str(ROUNDS), "--seed", str(SEED)]
    with (folder / "said.txt").open("wb") as output:
        confined_command = build_confined_command([*command, "--out", str(out)], death_signal=signal.SIGTERM)
        process = subprocess.Popen(confined_command, cwd=ROOT, stdout=output, stderr=output)

    def read_output() -> str:
        return (folder / "said.txt").read_text()

    def wait_for(number: int) -> dict[str, Any]:
        def is_written() -> bool:
            has_ended = process.poll() is not None
            is_found = number in _read_records(out)
            assert is_found or not has_ended, f"the benchmark ended before round {number}:\n{read_output()}"
            return is_found

        def describe() -> str:
            return f"round {number} did not end:\n{read_output()}"

        wait_until(is_written, every=0.5, seconds=PATIENCE_SECONDS, describe=describe)
        return _read_records(out)[number]

    yield wait_for
    if len(_read_records(out)) < ROUNDS:
        process.terminate()
    process.wait()


@pytest.mark.parametrize("number", range(1, ROUNDS + 1))
def test_chaos_round_breaks_no_invariant(read_round: RoundReader, number: int) -> None:
    record = read_round(number)

    assert record["violations"] == [], describe(record)


def _read_records(path: Path) -> dict[int, dict[str, Any]]:
    """Return the completed records by number; an incomplete last line is ignored."""
    if not path.exists():
        return {}
    lines = path.read_text().splitlines(keepends=True)
    records = [json.loads(line) for line in lines if line.endswith("\n")]
    return {record["number"]: record for record in records}
