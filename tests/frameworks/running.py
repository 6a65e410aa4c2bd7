"""Programs of agent frameworks, run in the environment of their framework against a gateway."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.gateway.running import in_database, make_alias, make_provider_at, make_token, run_gateway, run_simulated

ROOT = Path(__file__).parents[2]
ALIAS, OTHER_ALIAS = "weather", "weather-2"
NATIVE, HERMES = "perfect", "tagged-calls"
STRATEGIES = {NATIVE: "production", HERMES: "production+content_tag_tool_call_fallback"}
TIMEOUT_SECONDS = 300
# The variables switch off telemetry of the frameworks, and the proxy address has no listener.
_PRIVATE = {
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
        env={**environment, **_PRIVATE, "HOME": str(folder), "PYTHONPATH": str(ROOT), **variables},
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
    """Return the joined blocks of a language below a heading of the second level."""
    section = re.split(rf"^## {re.escape(heading)}$", page, flags=re.MULTILINE)[1]
    section = re.split(r"^## ", section, flags=re.MULTILINE)[0]
    return "".join(re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL))
