"""Chaos on a whole stack: processes killed and frozen, a full disk and poisoned answers, round after round.

`python -m benchmarks.chaos --rounds 300 --seed 1` plays the rounds that `--out` does not hold yet and prints the
summary. It exits with 1 when a round found something."""

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.chaos.lab_client import LabClient
from benchmarks.chaos.provider import CountingProvider
from benchmarks.chaos.round_file import RoundFile, SeedMismatchError, describe, list_rounds_left, summarise
from benchmarks.chaos.rounds import ChaosRunner
from benchmarks.chaos.schedule import plan_round
from benchmarks.chaos.small_disk import enter_namespace
from benchmarks.chaos.stack import Stack
from toolbench.installation import ROOT

TARGET_ROUND_SECONDS = 10.0  # a round; of longer ones the logs are kept


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=300, help="how many rounds in all (300)")
    parser.add_argument("--seed", type=int, default=1, help="start of the schedule (1)")
    parser.add_argument("--out", type=Path, help="file of the rounds played (var/chaos-SEED.jsonl); it is continued")
    return parser.parse_args()


@contextmanager
def _run_chaos(*, can_fill: bool) -> Iterator[ChaosRunner]:
    """A fresh stack, and what plays on it; everything is stopped and thrown away at the end."""
    folder = Path(tempfile.mkdtemp(prefix="tb-chaos-", dir="/tmp"))
    stack, provider = Stack(folder, can_fill=can_fill), CountingProvider()
    lab = None
    try:
        provider.start()
        stack.start()
        lab = LabClient(stack.environment)
        lab.ask("prepare")
        yield ChaosRunner(stack, lab, provider)
    finally:
        if lab:
            lab.stop()
        stack.stop()
        provider.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _play_rounds(numbers: list[int], seed: int, file: RoundFile, *, can_fill: bool) -> list[int]:
    """Play rounds on one stack; return those that are left when a run was stuck, which spoils the stack for others."""
    with _run_chaos(can_fill=can_fill) as chaos:
        while numbers:
            record = chaos.play(plan_round(seed, numbers.pop(0), can_fill=can_fill))
            file.append(record)
            print(describe(record), flush=True)
            if record["violations"] or record["seconds"] > TARGET_ROUND_SECONDS:
                chaos.stack.keep_logs(file.logs(record["number"]))
            if any(found["kind"] in ("stuck", "queued") for found in record["violations"]):
                break
    return numbers


def main() -> int:
    arguments = _read_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # by way of everything that has to be undone
    can_fill = enter_namespace("benchmarks.chaos")
    if not can_fill:
        print("The disk is not filled: this machine allows no mount namespace (unshare --mount).")
    file = RoundFile(arguments.out or ROOT / "var" / f"chaos-{arguments.seed}.jsonl", arguments.seed)
    try:
        numbers = list_rounds_left(file.read(), arguments.rounds)
    except SeedMismatchError as error:
        print(error, file=sys.stderr)
        return 2
    while numbers:
        numbers = _play_rounds(numbers, arguments.seed, file, can_fill=can_fill)
    played = file.read()
    print(f"\n{summarise(played)}")
    return int(any(record["violations"] for record in played))


if __name__ == "__main__":
    sys.exit(main())
