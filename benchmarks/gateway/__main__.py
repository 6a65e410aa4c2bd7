"""Time and CPU of requests through the gateway, directly and through LiteLLM's proxy.

`python -m benchmarks.gateway`: a server in a process of its own answers at once. The same request is sent to it
directly; through the gateway, which checks the token, validates the call and stores every exchange or none; and through
LiteLLM's proxy if `--litellm` names its command. The benchmark prints times, throughput and CPU per request, the delay
of texts in streams, and the memory of the gateway with open streams; then each aim beside its figure. It ends within
ten minutes: a row that takes more than 20 s has fewer requests.
"""

import argparse
import asyncio
import os
import resource
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.gateway.aims import DIRECT, LITELLM, STORED, UNSTORED, Delay, Line, Memory, print_aims
from benchmarks.gateway.load import WARM_UP_REQUESTS, Target, hold_streams, measure_delays, send_requests
from benchmarks.gateway.servers import create_aliases, read_cpu_ms, read_memory_mb, start_litellm, start_module
from benchmarks.stack import Stack

CONCURRENCIES = (1, 10, 50)
STREAMS_MEASURED, TEXTS, PAUSE_SECONDS = 10, 50, 0.02
ALIASES = ("stored", "unstored")
MAX_WARM_UP_SECONDS, MAX_LINE_SECONDS = 5, 20
LITELLM_DIVISOR = 5  # LiteLLM is slower, so it gets a fifth of the requests
SETTLE_SECONDS = 3


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway", description=__doc__)
    parser.add_argument("--requests", type=int, default=3000, help="of each row (default 3000)")
    parser.add_argument("--streams", type=int, default=1000, help="open at the same time (default 1000)")
    parser.add_argument(
        "--litellm", type=Path, help="path of the command litellm, in an environment with litellm[proxy]"
    )
    options = parser.parse_args(arguments)
    _, max_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max_files, max_files))
    with ExitStack() as started:
        stack = started.enter_context(Stack())
        url, _ = started.enter_context(start_module("benchmarks.gateway.upstream"))
        token = create_aliases(url, stack.environment)
        gateway = started.enter_context(start_module("toolbench.gateway", "--port", "0", environment=stack.environment))
        targets = [
            Target(DIRECT, url, token, "m"),
            Target(STORED, gateway[0], token, ALIASES[0], gateway[1]),
            Target(UNSTORED, gateway[0], token, ALIASES[1], gateway[1]),
        ]
        if options.litellm:
            targets.append(started.enter_context(start_litellm(options.litellm, url)))
        print(f"Load average at the start: {os.getloadavg()[0]:.1f}\n")
        lines = asyncio.run(_measure_requests(targets, options.requests, stack.read_postgres_ms))
        delays = asyncio.run(_measure_delays(targets))
        print_aims(lines, delays, asyncio.run(_measure_memory(targets[1], options.streams)))
        print(f"\nLoad average at the end: {os.getloadavg()[0]:.1f}")


async def _measure_requests(
    targets: Sequence[Target], requests: int, read_postgres_ms: Callable[[], float]
) -> list[Line]:
    print("| route | C | p50, ms | p95, ms | requests/s | CPU of the process, ms | PostgreSQL CPU, ms |")
    print("|---|---|---|---|---|---|---|")
    lines = []
    for concurrency in CONCURRENCIES:
        for target in targets:
            count = requests // LITELLM_DIVISOR if target.name == LITELLM else requests
            await send_requests(target, concurrency, WARM_UP_REQUESTS, MAX_WARM_UP_SECONDS)
            cpu, postgres = read_cpu_ms(target.pid) if target.pid else 0.0, read_postgres_ms()
            seconds, times = await send_requests(target, concurrency, count, MAX_LINE_SECONDS)
            if target.name == STORED:
                await asyncio.sleep(1)  # until the last batch is stored
            line = Line(
                route=target.name,
                concurrency=concurrency,
                p50=_quantile(times, 0.5),
                p95=_quantile(times, 0.95),
                per_second=len(times) / seconds,
                cpu_ms=(read_cpu_ms(target.pid) - cpu) / len(times) if target.pid else None,
                postgres_ms=(read_postgres_ms() - postgres) / len(times) if target.model in ALIASES else None,
            )
            lines.append(line)
            cpus = " | ".join("–" if value is None else f"{value:.2f}" for value in (line.cpu_ms, line.postgres_ms))
            figures = f"{line.p50:.2f} | {line.p95:.2f} | {line.per_second:.0f}"
            print(f"| {line.route} | {concurrency} | {figures} | {cpus} |", flush=True)
    return lines


async def _measure_delays(targets: Sequence[Target]) -> dict[str, Delay]:
    """Print the delay of texts in streams; return what each route adds to a direct stream."""
    print(f"\nDelay of a text, {STREAMS_MEASURED} streams, a text every {1000 * PAUSE_SECONDS:.0f} ms:\n")
    print("| route | texts | p50, ms | p95, ms | added p50 | added p95 |")
    print("|---|---|---|---|---|---|")
    direct: Delay | None = None
    added = {}
    for target in targets:
        delays = await measure_delays(target, STREAMS_MEASURED, TEXTS, PAUSE_SECONDS)
        p50, p95 = _quantile(delays, 0.5), _quantile(delays, 0.95)
        direct = direct or Delay(p50, p95)
        added[target.name] = more = Delay(p50 - direct.p50, p95 - direct.p95)
        print(
            f"| {target.name} | {len(delays)} | {p50:.2f} | {p95:.2f} | {more.p50:.2f} | {more.p95:.2f} |", flush=True
        )
    return added


async def _measure_memory(target: Target, streams: int) -> Memory:
    """Print and return the memory of a process before, during and after streams are open."""
    during = 0

    async def read_memory() -> None:
        nonlocal during
        await asyncio.sleep(SETTLE_SECONDS)
        during = read_memory_mb(target.pid)

    before = read_memory_mb(target.pid)
    opened = await hold_streams(target, streams, read_memory)
    await asyncio.sleep(SETTLE_SECONDS)
    after = read_memory_mb(target.pid)
    print(f"\nMemory with {opened:,} open streams: {before} MB before, {during} MB during, {after} MB after.")
    return Memory(opened, before, during, after)


def _quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values, without interpolation."""
    return values[min(len(values) - 1, int(share * len(values)))]


if __name__ == "__main__":
    main()
