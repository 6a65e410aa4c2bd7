"""Use of an endpoint's hidden limits by adaptive concurrency, and share of answers with status 429.

A real Celery worker runs the trials of a launched run against an endpoint that limits the requests in flight and the
requests per minute, and states neither limit. The endpoint counts. `--virtual` runs the same rate control in virtual
time, for all kinds of windows.
"""

import argparse
import json
import subprocess
import sys
import time
import urllib.request
from random import Random

from benchmarks.adaptive.hidden_limits import WINDOW_KINDS, HiddenLimits
from benchmarks.adaptive.simulation import SimulatedWorkers
from benchmarks.loop import REQUESTS_PER_TRIAL
from benchmarks.slow_server import run_printing_server
from benchmarks.stack import Stack
from toolbench.lab.worker.pacing.state import PaceSettings

HEAD = (
    f"{'window':8} {'latency':>8} {'accepted':>9} {'of the limits':>14} {'429':>5} {'share':>7} {'most in flight':>15}"
)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adaptive", description=__doc__)
    parser.add_argument(
        "--in-flight", type=int, default=37, metavar="N", help="limit of requests in flight (default 37)"
    )
    parser.add_argument(
        "--per-minute", type=int, default=600, metavar="N", help="limit of requests per minute (default 600)"
    )
    parser.add_argument(
        "--window", choices=WINDOW_KINDS, default="sliding", help="how the endpoint counts a minute (default sliding)"
    )
    parser.add_argument("--latency", type=float, default=2.0, metavar="S", help="mean seconds per answer (default 2)")
    parser.add_argument("--seconds", type=float, default=180, metavar="S", help="time that is measured (default 180)")
    parser.add_argument("--virtual", action="store_true", help="in virtual time, without servers")
    parser.add_argument("--points", action="store_true", help="print the points of the provider's chart")
    return parser.parse_args()


def print_line(options: argparse.Namespace, limits: HiddenLimits, seconds: float) -> None:
    per_second = min(limits.in_flight / options.latency, limits.per_minute / 60)
    share = 100 * limits.accepted / (per_second * seconds)
    print(
        f"{limits.window:8} {options.latency:6g} s {limits.accepted:>9} {share:>12.1f} % {limits.rejected:>5} "
        f"{limits.rejected_percent:>5.2f} % {limits.most_running:>15}"
    )


def run_in_virtual_time(options: argparse.Namespace) -> None:
    for window in WINDOW_KINDS:
        limits = HiddenLimits(options.in_flight, options.per_minute, window)

        def vary(generator: Random, in_flight: int) -> float:
            return float(options.latency * generator.uniform(0.5, 1.5))

        SimulatedWorkers(limits, PaceSettings(adaptive=True, max_concurrency=200), vary).run(options.seconds)
        print_line(options, limits, options.seconds)


def run_in_real_time(options: argparse.Namespace) -> None:
    limits = (options.in_flight, options.per_minute, options.window)
    server = run_printing_server("benchmarks.adaptive.limited_server", options.latency, *limits)
    with server as base_url, Stack() as stack:
        trials = int(2 * options.seconds * options.per_minute / 60 / REQUESTS_PER_TRIAL)
        command = [sys.executable, "-m", "benchmarks.adaptive.launched_run", base_url, str(trials)]
        with subprocess.Popen(
            command, env=dict(stack.environment), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as run:
            assert run.stdout is not None
            run.stdout.readline()
            time.sleep(options.seconds)
            with urllib.request.urlopen(base_url) as answer:
                counted = json.load(answer)
            points = json.loads(run.communicate("\n")[0])
    if options.points:
        for at, concurrency, in_flight, answers, rejections, rate in points:
            print(f"{at[11:19]}  {concurrency:4} {in_flight:4} {answers:5} {rejections:4} {rate or 0:8.1f}")
    print_line(options, HiddenLimits(options.in_flight, options.per_minute, options.window, **counted), options.seconds)


def main() -> None:
    options = parse_options()
    print(f"Limits: {options.in_flight} in flight, {options.per_minute} per minute; measured for {options.seconds:g} s")
    print(HEAD)
    (run_in_virtual_time if options.virtual else run_in_real_time)(options)


if __name__ == "__main__":
    main()
