"""Processes that the benchmark of the gateway starts: provider, gateway and LiteLLM's proxy."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import aiohttp

from benchmarks.gateway.aims import LITELLM
from benchmarks.gateway.load import Target

LITELLM_KEY = "sk-benchmark"
_START_SECONDS = 180
_TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def start_module(
    module: str, *arguments: str, environment: Mapping[str, str] = os.environ
) -> Iterator[tuple[str, int]]:
    """Run a module that prints its address as JSON during the block; yield the address and the process id."""
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.Popen(command, env=dict(environment), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"], process.pid
    finally:
        process.terminate()
        process.wait()


def create_aliases(upstream_url: str, environment: Mapping[str, str]) -> str:
    """Create the aliases `stored` and `unstored`, and return a token that may use them."""
    command = [sys.executable, "-m", "benchmarks.gateway.aliases", upstream_url]
    return subprocess.run(command, env=dict(environment), check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def start_litellm(program: Path, upstream_url: str) -> Iterator[Target]:
    """Run LiteLLM's proxy with one process, a key and one model during the block, and yield it.

    Args:
        program: the command `litellm` of an environment with the package `litellm[proxy]`.
        upstream_url: address of the provider.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    parameters = {"model": "openai/m", "api_base": f"{upstream_url}/v1", "api_key": "sk-none"}
    config = {
        "model_list": [{"model_name": "bench", "litellm_params": parameters}],
        "general_settings": {"master_key": LITELLM_KEY},
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(json.dumps(config))  # JSON is YAML
        command = [str(program), "--config", str(path), "--host", "127.0.0.1", "--port", str(port)]
        environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
        with (Path(folder) / "log").open("w") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
        try:
            target = Target(LITELLM, f"http://127.0.0.1:{port}", LITELLM_KEY, "bench", process.pid)
            asyncio.run(_wait_until_ready(target, process, Path(folder) / "log"))
            yield target
        finally:
            process.terminate()
            process.wait()


async def _wait_until_ready(target: Target, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    async with aiohttp.ClientSession(target.url) as session:
        while time.monotonic() < until and process.poll() is None:
            try:
                async with session.get("/health/readiness") as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.5)
    raise RuntimeError(f"LiteLLM did not start:\n{log.read_text(errors='replace')[-2000:]}")


def read_cpu_ms(pid: int) -> float:
    """Return the CPU time of a process in milliseconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / _TICKS


def read_memory_mb(pid: int) -> int:
    """Return the resident memory of a process in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS"))
