"""Helpers that run programs of agent frameworks against a gateway, each in its framework's environment."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.gateway.running import in_database, make_alias, make_provider_at, make_token, run_gateway, run_simulated

ROOT = Path(__file__).parents[2]
ALIAS, OTHER_ALIAS = "weather", "weather-2"
NATIVE_PERSONA, HERMES_PERSONA = "perfect", "tagged-calls"
STRATEGIES = {NATIVE_PERSONA: "production", HERMES_PERSONA: "production+content_tag_tool_call_fallback"}
TIMEOUT_SECONDS = 300
# No framework may send a request off this machine: telemetry is off, and the proxy for other hosts has no listener.
_OFFLINE_ENVIRONMENT = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
    "LANGSMITH_TRACING": "false",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost",
}


@asynccontextmanager
async def serve_alias(persona: str) -> AsyncIterator[tuple[str, str]]:
    """Run a gateway with two aliases that lead to a simulated model; yield its address and a token."""
    async with run_simulated() as simulated:
        provider = await in_database(make_provider_at, simulated.url, simulated.key)
        for name in (ALIAS, OTHER_ALIAS):
            await in_database(make_alias, provider, persona, name, strategy=STRATEGIES[persona])
        token = await in_database(make_token)
        async with run_gateway(token) as gateway:
            yield gateway.url, token


async def run_program(framework: str, folder: Path, *arguments: str, **variables: str) -> tuple[int, str, str]:
    """Run the Python of a framework's environment in a folder; return exit code, output and errors."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("DJANGO", "PYTEST", "COV"))
    }
    python = ROOT / "var/frameworks" / framework / "bin/python"
    process = await asyncio.create_subprocess_exec(
        python,
        *arguments,
        cwd=folder,
        env={**environment, **_OFFLINE_ENVIRONMENT, "HOME": str(folder), "PYTHONPATH": str(ROOT), **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            output, errors = await process.communicate()
    except TimeoutError:
        process.kill()
        raise
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


def read_blocks(page: str, heading: str, language: str) -> str:
    """Return the joined fenced code blocks of a language in the section `## heading` of a Markdown page."""
    section = re.split(rf"^## {re.escape(heading)}$", page, flags=re.MULTILINE)[1]
    section = re.split(r"^## ", section, flags=re.MULTILINE)[0]
    return "".join(re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL))
