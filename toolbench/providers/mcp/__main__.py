"""Child process that asks one MCP server for its tools: the server as JSON on stdin, the answer as JSON on stdout.

Nothing else runs in this process, so a server that never ends or sends without end costs it alone: the parent ends it
after a time limit, and its memory is bounded.
"""

import json
import logging
import resource
import sys
from typing import Any

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from toolbench.providers.mcp.server import MAX_ANSWER_BYTES, MAX_TOOLS

MAX_MEMORY_BYTES = 2**31  # address space; the SDK alone takes a quarter of it
READ_SECONDS = 15
ALL_SECONDS = 20


def main() -> None:
    """Read the server from stdin, and print its tools or a sentence that says why there are none."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    logging.disable(logging.CRITICAL)
    server = json.load(sys.stdin)
    refusals: list[int] = []
    try:
        answer = anyio.run(_list_tools, server, refusals)
    except Exception as error:  # one bad server gives a sentence, whatever it did
        answer = {"error": _describe(_find_cause(error), refusals)}
    text = json.dumps(answer)
    if len(text) > MAX_ANSWER_BYTES:
        text = json.dumps({"error": f"The list of tools has more than {MAX_ANSWER_BYTES:,} bytes."})
    sys.stdout.write(text)


async def _list_tools(server: dict[str, Any], refusals: list[int]) -> dict[str, Any]:
    transport = _build_transport(server, refusals)
    with anyio.fail_after(ALL_SECONDS):
        async with Client(transport, read_timeout_seconds=READ_SECONDS) as client:
            return _build_answer(await _read_pages(client), client.server_info)


async def _read_pages(client: Client) -> list[Any]:
    """Return the tools of all pages, or at most one page beyond MAX_TOOLS."""
    tools: list[Any] = []
    cursor: str | None = None
    while len(tools) <= MAX_TOOLS:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return tools


def _build_answer(tools: list[Any], info: Any) -> dict[str, Any]:
    listed = [
        {
            "name": tool.name,
            "description": tool.description or "",
            "parameters": tool.input_schema,
            "output": tool.output_schema,
        }
        for tool in tools[:MAX_TOOLS]
    ]
    return {"server": info.name if info else "", "tools": listed, "is_complete": len(tools) <= MAX_TOOLS}


def _build_transport(server: dict[str, Any], refusals: list[int]) -> Any:
    if not server["url"]:
        parameters = StdioServerParameters(
            command=server["command"], args=server["arguments"], env=server["environment"]
        )
        return stdio_client(parameters)

    async def record_refusal(response: httpx2.Response) -> None:
        if response.is_error:
            refusals.append(response.status_code)

    headers = {"Authorization": server["authorization"]} if server["authorization"] else {}
    client = httpx2.AsyncClient(headers=headers, timeout=READ_SECONDS, event_hooks={"response": [record_refusal]})
    return streamable_http_client(server["url"], http_client=client)


def _find_cause(error: BaseException) -> BaseException:
    """Return the first error inside groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _describe(error: BaseException, refusals: list[int]) -> str:
    if refusals:
        hint = " Check the authorization." if refusals[0] in (401, 403) else " Check the address."
        return f"The server answered with HTTP {refusals[0]}.{hint}"
    if isinstance(error, httpx2.ConnectError):
        return "No server answers at this address. Check host and port, and that the server runs."
    if isinstance(error, httpx2.TimeoutException | TimeoutError):
        return f"The server did not answer within {READ_SECONDS} seconds."
    if isinstance(error, OSError):
        return f"The command could not be started: {error.strerror or type(error).__name__}."
    if isinstance(error, MCPError) and "Connection closed" in str(error):
        return "The server closed the connection before it listed its tools."
    if isinstance(error, MemoryError):
        return "The server sent more than can be read."
    return "The answer is not that of an MCP server. Check the address: it often ends with /mcp."


if __name__ == "__main__":
    main()
