"""What a trial costs in CPU and in time, from bare aiohttp to a launched run with every byte stored.

A trial is three requests and two tool executions against an endpoint that takes a fixed time for every answer; at
concurrency C its limit is C / (3 * latency) trials a second. The ways take turns, round by round, so that a busy
machine harms all alike: trust the ratios to bare aiohttp of the same run, and look at the load average."""

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchmarks.benchmark_trial import MODEL_NAME
from benchmarks.layers import LayerFigures, measure_bare_client, measure_http_client, measure_layer, measure_loop
from benchmarks.stack import SECRET_KEY, Stack
from toolbench.providers.endpoint import Endpoint

REQUESTS_PER_TRIAL = 3
NAME_BY_LAYER = {
    "bare": "bare aiohttp",
    "door": "our door",
    "driven": "loop, nothing stored",
    "stored": "worker, all stored",
}

RunRound = Callable[[], LayerFigures]
Figures = dict[str, list[LayerFigures]]


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loop", description=__doc__)
    parser.add_argument("--concurrency", type=int, default=50, metavar="C", help="trials at once (default 50)")
    parser.add_argument("--latency", type=float, default=0.2, metavar="S", help="seconds per answer (default 0.2)")
    parser.add_argument("--trials", type=int, default=1000, metavar="N", help="per round and way (default 1000)")
    parser.add_argument("--rounds", type=int, default=3, metavar="R", help="rounds of all ways (default 3)")
    parser.add_argument(
        "--ways", nargs="+", choices=NAME_BY_LAYER, default=list(NAME_BY_LAYER), help="which ways (default all)"
    )
    return parser.parse_args()


@contextmanager
def run_slow_server(latency: float) -> Iterator[str]:
    """The address of a slow server that runs meanwhile."""
    command = [sys.executable, "-m", "benchmarks.slow_server", str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.terminate()


def measure_rounds(rounds: dict[str, RunRound], count: int) -> Figures:
    figures: Figures = {name: [] for name in rounds}
    for number in range(1, count + 1):
        for name, measure_once in rounds.items():
            figures[name].append(measure_once())
            last = figures[name][-1]
            load = os.getloadavg()[0]
            print(
                f"round {number}  {NAME_BY_LAYER[name]:22} {last.cpu_ms:6.2f} ms CPU  load {load:.1f}", file=sys.stderr
            )
    return figures


def print_report(figures: Figures, limit: float) -> None:
    """Medians, with least and most in brackets."""
    print(f"{'per trial':22} {'CPU ms':>20} {'/ bare':>7} {'of the limit':>19} {'PostgreSQL ms':>15}")
    bare_cpu = statistics.median(one.cpu_ms for one in figures["bare"]) if "bare" in figures else None
    for name, ones in figures.items():
        cpu = [one.cpu_ms for one in ones]
        share = [one.per_second / limit * 100 for one in ones]
        ratio = f"{statistics.median(cpu) / bare_cpu:.1f}" if bare_cpu else ""
        postgres = statistics.median(one.postgres_ms for one in ones)
        print(
            f"{NAME_BY_LAYER[name]:22} {_render_spread(cpu, 2):>20} {ratio:>7} {_render_spread(share, 0) + ' %':>19} "
            f"{f'{postgres:.2f}' if postgres else '':>15}"
        )


def _render_spread(values: list[float], digits: int) -> str:
    middle, least, most = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({least:.{digits}f}-{most:.{digits}f})"


def main() -> None:
    chosen = parse_options()
    trials, concurrency = chosen.trials, chosen.concurrency
    with run_slow_server(chosen.latency) as base_url, Stack() as stack:
        endpoint = Endpoint(base_url, MODEL_NAME, key=SECRET_KEY)
        rounds: dict[str, RunRound] = {
            "bare": lambda: measure_layer(measure_bare_client, endpoint, trials=trials, concurrency=concurrency),
            "door": lambda: measure_layer(measure_http_client, endpoint, trials=trials, concurrency=concurrency),
            "driven": lambda: measure_layer(measure_loop, endpoint, trials=trials, concurrency=concurrency),
            "stored": lambda: stack.measure_stored_run(base_url, trials=trials, concurrency=concurrency),
        }
        if "stored" in chosen.ways:
            stack.measure_stored_run(
                base_url, trials=concurrency, concurrency=concurrency
            )  # imports, connections, caches
        figures = measure_rounds({name: rounds[name] for name in NAME_BY_LAYER if name in chosen.ways}, chosen.rounds)
    print(f"C = {concurrency}, latency {chosen.latency} s, {trials} trials, {chosen.rounds} rounds")
    print_report(figures, concurrency / (REQUESTS_PER_TRIAL * chosen.latency))


if __name__ == "__main__":
    main()
