"""Child process that requests the list of tools of one MCP server.

It reads a server (`McpServer`) as JSON from standard input and writes the answer as JSON to standard output. Its memory
and that of a server that it starts are limited, and its parent (`supervision`) ends both after a time limit, so that
the answer of a faulty server cannot harm any other process.
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
from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, REQUEST_TIMEOUT

from toolbench.providers.mcp.server import MAX_ANSWER_BYTES, MAX_TOOLS

# Limit for this process and for each process of a server that it starts. Node.js reserves more, but memory
# that is only reserved does not count.
MAX_MEMORY_BYTES = 2**31
READ_SECONDS = 15  # longest wait for one response
TOTAL_SECONDS = 20  # time limit of the whole conversation with the server
_SERVER_ERROR_CODES = (METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR)  # sent by the server, not set by the SDK
_TIMEOUT_SENTENCE = f"The server did not answer within {READ_SECONDS} seconds."
_NO_MCP_SENTENCE = "The answer is not that of an MCP server. Check the address: it often ends with /mcp."


def main() -> None:
    """Read the server from standard input, and print its tools or the sentence of an error."""
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    logging.disable(logging.CRITICAL)
    server = json.load(sys.stdin)
    refusal_statuses: list[int] = []
    try:
        answer = anyio.run(_list_tools, server, refusal_statuses)
    except Exception as error:  # any error of a faulty server is reported as a sentence
        answer = {"error": describe_error(_find_first_error(error), refusal_statuses)}
    text = json.dumps(answer)
    if len(text) > MAX_ANSWER_BYTES:
        text = json.dumps({"error": f"The list of tools has more than {MAX_ANSWER_BYTES:,} bytes."})
    sys.stdout.write(text)


async def _list_tools(server: dict[str, Any], refusal_statuses: list[int]) -> dict[str, Any]:
    """Request the list of tools and return the answer to print.

    Args:
        server: fields of `McpServer`.
        refusal_statuses: list to which the HTTP statuses of error responses to POST requests are added.
    """
    transport = _build_transport(server, refusal_statuses)
    with anyio.fail_after(TOTAL_SECONDS):
        async with Client(transport, read_timeout_seconds=READ_SECONDS) as client:
            return _build_answer(await _read_pages(client), client.server_info)


async def _read_pages(client: Client) -> list[Any]:
    """Return the tools of all pages, up to the page that exceeds `MAX_TOOLS`."""
    tools: list[Any] = []
    cursor: str | None = None
    while len(tools) <= MAX_TOOLS:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return tools


def _build_answer(tools: list[Any], server_info: Any) -> dict[str, Any]:
    tool_fields = [
        {
            "name": tool.name,
            "description": tool.description or "",
            "parameters": tool.input_schema,
            "output": tool.output_schema,
        }
        for tool in tools[:MAX_TOOLS]
    ]
    return {
        "server": server_info.name if server_info else "",
        "tools": tool_fields,
        "is_complete": len(tools) <= MAX_TOOLS,
    }


def _build_transport(server: dict[str, Any], refusal_statuses: list[int]) -> Any:
    if not server["url"]:
        parameters = StdioServerParameters(
            command=server["command"], args=server["arguments"], env=server["environment"]
        )
        return stdio_client(parameters)

    async def record_refusal(response: httpx2.Response) -> None:
        if response.is_error and response.request.method == "POST":  # a server may refuse the stream of a GET
            refusal_statuses.append(response.status_code)

    headers = {"Authorization": server["authorization"]} if server["authorization"] else {}
    client = httpx2.AsyncClient(headers=headers, timeout=READ_SECONDS, event_hooks={"response": [record_refusal]})
    return streamable_http_client(server["url"], http_client=client)


def _find_first_error(error: BaseException) -> BaseException:
    """Return the first error in nested exception groups, or the error itself if it is not a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def describe_error(error: BaseException, refusal_statuses: list[int]) -> str:
    """Return a sentence for users about the first refusal, else about the error."""
    if refusal_statuses:
        status = refusal_statuses[0]
        place = "authorization" if status in (401, 403) else "address" if status < 500 else "log of the server"
        return f"The server answered with HTTP {status}. Check the {place}."
    if isinstance(error, MCPError):
        return _describe_mcp_error(error)
    if isinstance(error, httpx2.ConnectError):
        return "No server answers at this address. Check host and port, and that the server runs."
    if isinstance(error, httpx2.TimeoutException):
        return _TIMEOUT_SENTENCE
    if isinstance(error, TimeoutError):
        return f"The server did not list its tools within {TOTAL_SECONDS} seconds."
    if isinstance(error, OSError):
        return f"The command could not be started: {error.strerror or type(error).__name__}."
    if isinstance(error, MemoryError):
        return "The server's list of tools is too large."
    return _NO_MCP_SENTENCE


def _describe_mcp_error(error: MCPError) -> str:
    """Return a sentence for an error of the server, or of the SDK about its answer."""
    if error.code == CONNECTION_CLOSED:
        return "The server closed the connection before it listed its tools."
    if error.code == REQUEST_TIMEOUT:
        return _TIMEOUT_SENTENCE
    if error.code in _SERVER_ERROR_CODES:
        return f"The server sent error {error.code} instead of its tools. Check that it is an MCP server with tools."
    return _NO_MCP_SENTENCE


if __name__ == "__main__":
    main()
