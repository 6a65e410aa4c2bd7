"""Cost of the gateway beside a direct request: `python -m benchmarks.gateway`.

A server in a process of its own answers at once with a call. The same request goes to it directly and through the
gateway, which checks the token, validates the call and stores every exchange, or none. Prints p50, p95, requests a
second, CPU of the gateway and of PostgreSQL per request, and memory under open streams.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import aiohttp
from aiohttp import web

from benchmarks.stack import Stack

CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Berlin"}'}}
ANSWER = {
    "id": "x",
    "object": "chat.completion",
    "created": 0,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": None, "tool_calls": [CALL]},
        }
    ],
    "usage": {"prompt_tokens": 60, "completion_tokens": 12, "total_tokens": 72},
}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
BODY = {
    "model": "bench",
    "messages": [{"role": "user", "content": "How is the weather in Berlin?"}],
    "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}],
}
TICKS = os.sysconf("SC_CLK_TCK")
SET_UP = """
import django; django.setup()
from django.contrib.auth.models import User
from toolbench.lab.accounts.roles import Role, set_role
from toolbench.lab.accounts.tokens import create_api_token
from toolbench.lab.models import Model, Provider
from toolbench.lab.serving.aliases import AliasChoice, save_alias
import sys
provider, _ = Provider.objects.get_or_create(name="bench", base_url=sys.argv[1], concurrency=1000)
model, _ = Model.objects.get_or_create(provider=provider, name="m", canonical="m")
for name, percent in (("stored", 100), ("unstored", 0)):
    save_alias(AliasChoice(name, model.pk, keep_percent=percent), owner=None)
user, _ = User.objects.get_or_create(username="bench")
set_role(user, Role.OPERATOR)
user.save()
print(create_api_token(user, "bench", ["serve"], None)[1])
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway", description="Times the gateway.")
    parser.add_argument("--requests", type=int, default=3000, help="of each line")
    options = parser.parse_args(arguments)
    if os.environ.get("BENCHMARK_UPSTREAM"):
        asyncio.run(_serve_upstream())
        return
    upstream, url = _start(["-m", "benchmarks.gateway"], {**os.environ, "BENCHMARK_UPSTREAM": "1"})
    try:
        with Stack() as stack:
            environment = dict(stack.environment)
            token = subprocess.run(
                [sys.executable, "-c", SET_UP, url], env=environment, check=True, capture_output=True, text=True
            ).stdout.strip()
            gateway, gateway_url = _start(["-m", "toolbench.gateway", "--port", "0"], environment)
            try:
                asyncio.run(_measure_all(url, gateway_url, token, gateway.pid, options.requests))
            finally:
                gateway.terminate()
                gateway.wait()
    finally:
        upstream.terminate()
        upstream.wait()


def _start(command: list[str], environment: dict[str, str]) -> tuple[subprocess.Popen[str], str]:
    """Start a server and return its address, which is in the JSON of its first line."""
    process = subprocess.Popen([sys.executable, *command], env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())["url"]


async def _serve_upstream() -> None:
    body = json.dumps(ANSWER).encode()

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=body, content_type="application/json")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    print(json.dumps({"url": f"http://{host}:{port}"}), flush=True)
    await asyncio.Event().wait()


async def _measure_all(url: str, gateway_url: str, token: str, pid: int, requests: int) -> None:
    print("| way | C | p50, ms | p95, ms | requests/s | gateway CPU, ms | PostgreSQL CPU, ms |")
    print("|---|---|---|---|---|---|---|")
    for concurrency in (1, 10, 50):
        for way, base, model in (
            ("direct", url, "m"),
            ("gateway, stored", gateway_url, "stored"),
            ("gateway, not stored", gateway_url, "unstored"),
        ):
            body = json.dumps({**BODY, "model": model}).encode()
            await _load(base, token, body, concurrency, 200)
            before = _read_cpu(pid), _read_postgres_cpu()
            seconds, times = await _load(base, token, body, concurrency, requests)
            if way == "gateway, stored":
                await asyncio.sleep(1)  # until the last batch is stored
            cpu = ((_read_cpu(pid) - before[0]) / requests, (_read_postgres_cpu() - before[1]) / requests)
            p50, p95 = times[len(times) // 2], times[int(0.95 * len(times))]
            shown = [f"{figure:.2f}" for figure in cpu] if way != "direct" else ["–", "–"]
            print(f"| {way} | {concurrency} | {p50:.2f} | {p95:.2f} | {requests / seconds:.0f} | {' | '.join(shown)} |")
    print(f"\nMemory of the gateway afterwards: {_read_memory(pid)} MB.")


async def _load(base: str, token: str, body: bytes, concurrency: int, requests: int) -> tuple[float, list[float]]:
    """Return the seconds of all requests, and the sorted milliseconds of each."""
    left, times = iter(range(requests)), []
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    connector = aiohttp.TCPConnector(limit=concurrency)

    async def work(session: aiohttp.ClientSession) -> None:
        for _ in left:
            began = time.perf_counter()
            async with session.post("/v1/chat/completions", data=body) as response:
                answer = await response.read()
                assert response.status == 200, answer
            times.append(1000 * (time.perf_counter() - began))

    async with aiohttp.ClientSession(base, headers=headers, connector=connector) as session:
        began = time.perf_counter()
        await asyncio.gather(*(work(session) for _ in range(concurrency)))
        return time.perf_counter() - began, sorted(times)


def _read_cpu(pid: int) -> float:
    """Return the CPU time of a process in milliseconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / TICKS


def _read_postgres_cpu() -> float:
    """Return the CPU time of all processes of PostgreSQL on this machine, ended ones included, in milliseconds."""
    total = 0.0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        if "(postgres)" in text:
            fields = text.rpartition(")")[2].split()
            total += sum(int(field) for field in fields[11:15]) * 1000 / TICKS
    return total


def _read_memory(pid: int) -> int:
    """Return the resident memory of a process in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS"))


if __name__ == "__main__":
    main()
