"""Cost of the gateway beside a direct request and LiteLLM's proxy: `python -m benchmarks.gateway`.

A server in a process of its own answers at once. The same request goes to it directly, through the gateway, which
checks the token, validates the call and stores every exchange, or none, and through LiteLLM's proxy if `--litellm`
names its command. Prints times, throughput and CPU per request, the delay of the texts of streams, and the memory of
the gateway under open streams.
"""

import argparse
import asyncio
import os
import resource
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.gateway.load import WARM_UP_REQUESTS, Target, hold_streams, measure_delays, send_requests
from benchmarks.gateway.servers import create_aliases, read_cpu_ms, read_memory_mb, start_litellm, start_module
from benchmarks.stack import Stack

CONCURRENCIES = (1, 10, 50)
STREAMS_MEASURED, TEXTS, PAUSE_SECONDS = 10, 50, 0.02
LITELLM_SHARE = 5  # it is slower, so that it gets a fifth of the requests
SETTLE_SECONDS = 3


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway", description="Times the gateway.")
    parser.add_argument("--requests", type=int, default=3000, help="of each line")
    parser.add_argument("--streams", type=int, default=1000, help="open at once")
    parser.add_argument("--litellm", type=Path, help="command litellm of an environment with litellm[proxy]")
    options = parser.parse_args(arguments)
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    with ExitStack() as started:
        stack = started.enter_context(Stack())
        url, _ = started.enter_context(start_module("benchmarks.gateway.upstream"))
        token = create_aliases(url, stack.environment)
        gateway = started.enter_context(start_module("toolbench.gateway", "--port", "0", environment=stack.environment))
        targets = [
            Target("direct", url, token, "m"),
            Target("gateway, stored", gateway[0], token, "stored", gateway[1]),
            Target("gateway, not stored", gateway[0], token, "unstored", gateway[1]),
        ]
        if options.litellm:
            targets.append(started.enter_context(start_litellm(options.litellm, url)))
        print(f"Load average at the start: {os.getloadavg()[0]:.1f}\n")
        asyncio.run(_measure_requests(targets, options.requests, stack.read_postgres_ms))
        asyncio.run(_measure_delays(targets))
        asyncio.run(_measure_memory(targets[1], options.streams))
        print(f"\nLoad average at the end: {os.getloadavg()[0]:.1f}")


async def _measure_requests(targets: Sequence[Target], requests: int, read_postgres_ms: Callable[[], float]) -> None:
    print("| way | C | p50, ms | p95, ms | requests/s | CPU of the process, ms | PostgreSQL CPU, ms |")
    print("|---|---|---|---|---|---|---|")
    for concurrency in CONCURRENCIES:
        for target in targets:
            count = requests // LITELLM_SHARE if target.name == "LiteLLM" else requests
            await send_requests(target, concurrency, WARM_UP_REQUESTS)
            cpu, postgres = read_cpu_ms(target.pid) if target.pid else 0.0, read_postgres_ms()
            seconds, times = await send_requests(target, concurrency, count)
            if target.name == "gateway, stored":
                await asyncio.sleep(1)  # until the last batch is stored
            figures = [
                f"{(read_cpu_ms(target.pid) - cpu) / count:.2f}" if target.pid else "–",
                f"{(read_postgres_ms() - postgres) / count:.2f}" if target.name.startswith("gateway") else "–",
            ]
            shown = f"{_quantile(times, 0.5):.2f} | {_quantile(times, 0.95):.2f} | {count / seconds:.0f}"
            print(f"| {target.name} | {concurrency} | {shown} | {' | '.join(figures)} |", flush=True)


async def _measure_delays(targets: Sequence[Target]) -> None:
    """Print how long the texts of streams take from the provider to the client."""
    print(f"\nDelay of a text, {STREAMS_MEASURED} streams, a text every {1000 * PAUSE_SECONDS:.0f} ms:\n")
    print("| way | texts | p50, ms | p95, ms | added p50 | added p95 |")
    print("|---|---|---|---|---|---|")
    direct: tuple[float, float] | None = None
    for target in targets:
        delays = await measure_delays(target, STREAMS_MEASURED, TEXTS, PAUSE_SECONDS)
        p50, p95 = _quantile(delays, 0.5), _quantile(delays, 0.95)
        direct = direct or (p50, p95)
        added = f"{p50 - direct[0]:.2f} | {p95 - direct[1]:.2f}"
        print(f"| {target.name} | {len(delays)} | {p50:.2f} | {p95:.2f} | {added} |", flush=True)


async def _measure_memory(target: Target, streams: int) -> None:
    """Print the memory of a process before, while and after streams are open."""
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


def _quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values by nearest rank."""
    return values[min(len(values) - 1, int(share * len(values)))]


if __name__ == "__main__":
    main()
