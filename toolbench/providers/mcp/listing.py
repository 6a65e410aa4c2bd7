"""Requests for the list of tools of an MCP server. The tools are never called."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from urllib.parse import urlsplit

from toolbench.providers.mcp.server import McpServer, McpTool, ToolList, ToolListError
from toolbench.providers.mcp.supervision import TIMEOUT_EXIT_CODE

TIMEOUT_SECONDS = 25
_END_SECONDS = 10  # time for the processes to end after the time limit


def list_mcp_tools(server: McpServer, *, timeout: float = TIMEOUT_SECONDS) -> ToolList:
    """Request the list of tools of a server, in a child process with limits of time and memory.

    On Linux, a server that the child process started is killed even if the child process or this process ends first.

    Args:
        server: the server.
        timeout: seconds after which the child process and the server are killed.

    Raises:
        ToolListError: the address is not valid, or the server does not answer with a list of tools.
    """
    _check_address(server)
    command = [sys.executable, "-m", "toolbench.providers.mcp.supervision", str(os.getpid()), str(timeout)]
    timeout_error = ToolListError(f"The server did not list its tools within {timeout:g} seconds.")
    try:
        child = subprocess.run(
            command,
            input=json.dumps(asdict(server)).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout + _END_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise timeout_error from None
    if child.returncode == TIMEOUT_EXIT_CODE:
        raise timeout_error
    return _parse_answer(child.stdout)


def _check_address(server: McpServer) -> None:
    if server.command:
        return
    try:
        parts = urlsplit(server.url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ToolListError("This is not an address: an address begins with http:// or https:// and names a host.")


def _parse_answer(output: bytes) -> ToolList:
    try:
        answer = json.loads(output)
    except ValueError:
        raise ToolListError("The server's list of tools is too large, or the process that reads it failed.") from None
    if "error" in answer:
        raise ToolListError(answer["error"])
    tools = tuple(McpTool(**tool) for tool in answer["tools"])
    return ToolList(server=answer["server"], tools=tools, is_complete=answer["is_complete"])
