"""CPU of a trial at the beginning and at the end of a long run, with every byte stored.

The run has several cells, so that counting them reads all trials. The trials are those of `benchmarks.loop`. CPU is
read from /proc each time another part of the trials has ended.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.slow_server import run_printing_server
from benchmarks.stack import Stack
from toolbench.installation import ROOT

POLL_SECONDS = 0.5
_COUNT_ENDED = "SELECT count(*) FROM lab_trial WHERE run_id = (SELECT max(id) FROM lab_run) AND finished_at IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Sample:
    """Figures so far.

    Attributes:
        ended: number of ended trials.
        seconds: time of the monotonic clock.
        worker_ms: CPU of the worker.
        postgres_ms: CPU of PostgreSQL.
        worker_mb: resident memory of the worker now.
    """

    ended: int
    seconds: float
    worker_ms: float
    postgres_ms: float
    worker_mb: float


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_run", description=__doc__)
    parser.add_argument("--trials", type=int, default=20_000, metavar="N", help="default 20000")
    parser.add_argument("--models", type=int, default=20, metavar="M", help="cells of the run (default 20)")
    parser.add_argument("--concurrency", type=int, default=200, metavar="C", help="trials at once (default 200)")
    parser.add_argument("--latency", type=float, default=0.2, metavar="S", help="seconds per answer (default 0.2)")
    parser.add_argument("--parts", type=int, default=10, metavar="P", help="rows of the table (default 10)")
    return parser.parse_args()


def take_sample(stack: Stack, database: psycopg.Connection[tuple[int]]) -> Sample:
    """Read the figures now."""
    row = database.execute(_COUNT_ENDED).fetchone()
    resident_pages = int(Path(f"/proc/{stack.worker_pid}/statm").read_text().split()[1])
    worker_mb = resident_pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    return Sample(row[0] if row else 0, time.monotonic(), stack.read_worker_ms(), stack.read_postgres_ms(), worker_mb)


def iter_parts(stack: Stack, run: subprocess.Popen[bytes], part: int) -> Iterator[tuple[Sample, Sample]]:
    """Yield the samples before and after each part of the run, when the part has ended.

    Args:
        stack: servers and worker of the run.
        run: process that launches the run and waits for its end.
        part: trials of a part; fewer trials at the end of the run are left out.
    """
    with psycopg.connect(stack.environment["DATABASE_URL"], autocommit=True) as database:
        runs_before = database.execute("SELECT count(*) FROM lab_run").fetchone()
        while database.execute("SELECT count(*) FROM lab_run").fetchone() == runs_before and run.poll() is None:
            time.sleep(POLL_SECONDS)
        before = take_sample(stack, database)
        while run.poll() is None:
            time.sleep(POLL_SECONDS)
            after = take_sample(stack, database)
            if after.ended >= before.ended + part:
                yield before, after
                before = after


def main() -> None:
    options = parse_options()
    command = [sys.executable, "-m", "benchmarks.stored_run"]
    with run_printing_server("benchmarks.slow_server", options.latency) as base_url, Stack() as stack:
        stack.measure_stored_run(base_url, trials=100, concurrency=50)  # imports, connections, caches
        arguments = [base_url, *map(str, (options.trials, options.concurrency, options.models))]
        print("ended trials   worker ms   PostgreSQL ms    sum   trials/s   worker MB   load", flush=True)
        with subprocess.Popen([*command, *arguments], cwd=ROOT, env=dict(stack.environment)) as run:
            for before, after in iter_parts(stack, run, options.trials // options.parts):
                trials = after.ended - before.ended
                worker, postgres = after.worker_ms - before.worker_ms, after.postgres_ms - before.postgres_ms
                print(
                    f"{after.ended:12,} {worker / trials:11.2f} {postgres / trials:15.2f} "
                    f"{(worker + postgres) / trials:6.2f} {trials / (after.seconds - before.seconds):10.0f} "
                    f"{after.worker_mb:11.0f} {os.getloadavg()[0]:6.1f}",
                    flush=True,
                )
        if run.returncode:
            raise SystemExit(run.returncode)


if __name__ == "__main__":
    main()
