"""CPU and throughput of a trial, from bare aiohttp to a launched run with every byte stored.

A trial is three requests and two tool executions against an endpoint that takes a fixed time for every answer; at
concurrency C the limit is C / (3 * latency) trials per second. The ways take turns, round by round, so that other work
on the machine affects all of them. Compare ratios to bare aiohttp of the same run, and note the load average. The sums
contain the search texts, which sweeps write after the trials; the last table states their CPU apart.
"""

import argparse
import os
import statistics
import sys
from collections.abc import Callable

from benchmarks.benchmark_trial import MODEL_NAME
from benchmarks.layers import LayerFigures, measure_layer, run_bare_client, run_http_client, run_loop
from benchmarks.slow_server import run_printing_server
from benchmarks.stack import SECRET_KEY, Stack
from toolbench.providers.endpoint import Endpoint

REQUESTS_PER_TRIAL = 3
TRIALS_PER_SLOT = 20
NAME_BY_LAYER = {
    "bare": "bare aiohttp",
    "door": "HTTP client",
    "driven": "loop, nothing stored",
    "stored": "worker, all stored",
    "two": "two workers, all stored",
}
DEFAULT_LAYERS = ("bare", "driven", "stored", "two")
AIM_BY_CONCURRENCY = {50: 90, 200: 78, 500: 50}  # throughput with all stored, in per cent of the limit
MAX_TOTAL_MS = 4.2  # aim for the CPU of worker and PostgreSQL, per trial, without search texts
SEARCH_TEXTS = 2_000  # of stored trials, written anew

RunRound = Callable[[], LayerFigures]
Figures = dict[str, list[LayerFigures]]


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loop", description=__doc__)
    parser.add_argument(
        "--concurrency", type=int, nargs="+", default=list(AIM_BY_CONCURRENCY), metavar="C", help="default 50 200 500"
    )
    parser.add_argument("--latency", type=float, default=0.2, metavar="S", help="seconds per answer (default 0.2)")
    parser.add_argument("--trials", type=int, metavar="N", help="per round and way (default 20 times the concurrency)")
    parser.add_argument("--rounds", type=int, default=3, metavar="R", help="rounds of all ways (default 3)")
    parser.add_argument(
        "--ways", nargs="+", choices=NAME_BY_LAYER, default=list(DEFAULT_LAYERS), help="default all but door"
    )
    return parser.parse_args()


def measure_rounds(rounds: dict[str, RunRound], count: int) -> Figures:
    """Measure `count` rounds of each way, the ways in turn."""
    figures: Figures = {name: [] for name in rounds}
    for number in range(1, count + 1):
        for name, measure_once in rounds.items():
            figures[name].append(measure_once())
            last = figures[name][-1]
            load = os.getloadavg()[0]
            print(
                f"round {number}  {NAME_BY_LAYER[name]:23} {last.cpu_ms:6.2f} ms CPU  load {load:.1f}", file=sys.stderr
            )
    return figures


def print_report(figures: Figures, concurrency: int, limit: float) -> None:
    """Print medians, with minimum and maximum in brackets."""
    print(f"{'per trial':23} {'CPU ms':>20} {'/ bare':>7} {'of the limit':>19} {'PostgreSQL ms':>15} {'sum':>6}")
    bare_cpu = statistics.median(figure.cpu_ms for figure in figures["bare"]) if "bare" in figures else None
    for name, of_layer in figures.items():
        cpu = [figure.cpu_ms for figure in of_layer]
        shares = [figure.per_second / limit * 100 for figure in of_layer]
        ratio = f"{statistics.median(cpu) / bare_cpu:.1f}" if bare_cpu else ""
        postgres = statistics.median(figure.postgres_ms for figure in of_layer)
        total = statistics.median(figure.cpu_ms + figure.postgres_ms for figure in of_layer)
        print(
            f"{NAME_BY_LAYER[name]:23} {_render_spread(cpu, 2):>20} {ratio:>7} {_render_spread(shares, 0) + ' %':>19} "
            f"{f'{postgres:.2f}' if postgres else '':>15} {f'{total:.2f}' if postgres else '':>6}"
        )
    if concurrency in AIM_BY_CONCURRENCY:
        share = AIM_BY_CONCURRENCY[concurrency]
        print(f"aims: {share} % of the limit stored, at most {MAX_TOTAL_MS} ms without search texts")


def _render_spread(values: list[float], digits: int) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def _warm_up(stack: Stack, base_url: str) -> None:
    """Let the workers import, connect and fill their caches, which takes seconds of CPU."""
    stack.measure_stored_run(base_url, trials=200, concurrency=50)


def _build_rounds(stack: Stack, base_url: str, *, trials: int, concurrency: int) -> dict[str, RunRound]:
    endpoint = Endpoint(base_url, MODEL_NAME, key=SECRET_KEY)

    def measure_two_workers() -> LayerFigures:
        with stack.run_second_worker():
            _warm_up(stack, base_url)
            return stack.measure_stored_run(base_url, trials=trials, concurrency=concurrency)

    return {
        "bare": lambda: measure_layer(run_bare_client, endpoint, trials=trials, concurrency=concurrency),
        "door": lambda: measure_layer(run_http_client, endpoint, trials=trials, concurrency=concurrency),
        "driven": lambda: measure_layer(run_loop, endpoint, trials=trials, concurrency=concurrency),
        "stored": lambda: stack.measure_stored_run(base_url, trials=trials, concurrency=concurrency),
        "two": measure_two_workers,
    }


def main() -> None:
    options = parse_options()
    with run_printing_server("benchmarks.slow_server", options.latency) as base_url, Stack() as stack:
        if {"stored", "two"} & set(options.ways):
            _warm_up(stack, base_url)
        for concurrency in options.concurrency:
            trials = options.trials or TRIALS_PER_SLOT * concurrency
            rounds = _build_rounds(stack, base_url, trials=trials, concurrency=concurrency)
            figures = measure_rounds({name: rounds[name] for name in rounds if name in options.ways}, options.rounds)
            print(f"\nC = {concurrency}, latency {options.latency} s, {trials} trials, {options.rounds} rounds")
            print_report(figures, concurrency, concurrency / (REQUESTS_PER_TRIAL * options.latency))
        if {"stored", "two"} & set(options.ways):
            print("\n" + stack.run_module("benchmarks.million.search_texts", str(SEARCH_TEXTS)), end="")


if __name__ == "__main__":
    main()
