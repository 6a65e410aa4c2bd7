"""Rounds of faults on a whole stack: processes killed and frozen, a full disk and poisoned answers.

`python -m benchmarks.chaos --rounds 300 --seed 1` plays the rounds that `--out` does not hold yet and prints a summary.
The exit code is 1 if a round found a violation, and 2 if the file holds rounds of another seed.
"""

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

TARGET_ROUND_SECONDS = 10.0  # the logs of a longer round are kept


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=300, help="number of rounds in all (default 300)")
    parser.add_argument("--seed", type=int, default=1, help="of the schedule (default 1)")
    parser.add_argument(
        "--out", type=Path, help="file of the rounds played, which is continued (default var/chaos-SEED.jsonl)"
    )
    return parser.parse_args()


@contextmanager
def _run_chaos(*, can_fill: bool) -> Iterator[ChaosRunner]:
    """Start a new stack with a provider and yield its runner; stop and delete everything at the end."""
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
    """Play rounds on one stack until a run is stuck, since the next rounds need a new stack then.

    Returns:
        The numbers of the rounds that are left.
    """
    with _run_chaos(can_fill=can_fill) as chaos:
        while numbers:
            record = chaos.play(plan_round(seed, numbers.pop(0), can_fill=can_fill))
            file.append(record)
            print(describe(record), flush=True)
            if record["violations"] or record["seconds"] > TARGET_ROUND_SECONDS:
                chaos.stack.keep_logs(file.get_log_folder(record["number"]))
            if any(found["kind"] in ("stuck", "queued") for found in record["violations"]):
                break
    return numbers


def main() -> int:
    arguments = _read_arguments()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit("stopped")
    )  # so that every fault is undone and the stack is stopped
    can_fill = enter_namespace("benchmarks.chaos")
    if not can_fill:
        print("No round fills the disk: this machine allows no mount namespace (unshare --mount).")
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
