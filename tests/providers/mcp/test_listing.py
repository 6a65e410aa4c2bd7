"""Tests of listing the tools of MCP servers over HTTP and stdio, and of the sentences for anything else."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from mcp import MCPError
from mcp.types import REQUEST_TIMEOUT

from tests.wait import wait_until
from toolbench.providers.mcp.__main__ import MAX_MEMORY_BYTES, TOTAL_SECONDS, describe_error
from toolbench.providers.mcp.listing import list_mcp_tools
from toolbench.providers.mcp.server import McpServer, ToolListError
from toolbench.providers.scripted_server import (
    ConnectionEnd,
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    error_reply,
    json_reply,
)

SERVER_FILE = str(Path(__file__).with_name("weather_server.py"))
STDIO_SERVER = McpServer(command=sys.executable, arguments=(SERVER_FILE, "stdio"))


@pytest.fixture(scope="module")
def server_url() -> Iterator[str]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    process = subprocess.Popen([sys.executable, SERVER_FILE, "http", str(port)], stderr=subprocess.DEVNULL)

    def accepts_connections() -> bool:
        assert process.poll() is None
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(accepts_connections)
    yield f"http://127.0.0.1:{port}/mcp"
    process.terminate()
    process.wait()


def test_list_mcp_tools_over_http_and_stdio_is_the_same(server_url: str) -> None:
    over_http, over_stdio = list_mcp_tools(McpServer(url=server_url)), list_mcp_tools(STDIO_SERVER)
    assert over_http == over_stdio
    weather, delete = over_http.tools
    assert (over_http.server, over_http.is_complete) == ("Weather desk", True)
    assert (weather.name, weather.description) == ("get_weather", "Return the weather of a city.")
    assert weather.parameters["required"] == ["city"]
    assert weather.output is not None
    assert delete.name == "delete_city"


@pytest.mark.parametrize(
    ("server", "sentence"),
    [
        (McpServer(url="ftp://example.org"), "begins with http:// or https://"),
        (McpServer(url="http://[::1"), "begins with http:// or https://"),
        (McpServer(url="http://127.0.0.1:1/mcp"), "No server answers at this address"),
        (McpServer(command="/nonexistent/server"), "could not be started: No such file"),
        (McpServer(command="/bin/true"), "closed the connection"),
        (McpServer(command="/bin/cat"), "Check that it is an MCP server with tools"),
    ],
)
def test_list_mcp_tools_of_no_mcp_server_raises_a_sentence(server: McpServer, sentence: str) -> None:
    with pytest.raises(ToolListError, match=sentence):
        list_mcp_tools(server)


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (error_reply(401), "HTTP 401. Check the authorization"),
        (error_reply(404), "HTTP 404. Check the address"),
        (error_reply(500), "HTTP 500. Check the log of the server"),
        (json_reply([]), "not that of an MCP server"),
    ],
)
def test_list_mcp_tools_http_answer_without_tools_raises_a_sentence(reply: ScriptedReply, sentence: str) -> None:
    with ScriptedServer([reply] * 4) as server, pytest.raises(ToolListError, match=sentence):
        list_mcp_tools(McpServer(url=f"{server.base_url}/mcp", authorization="Bearer secret"))


def test_list_mcp_tools_ignores_a_refused_stream_of_the_server() -> None:
    has_stream_request = threading.Event()

    def fail_after_stream_request(body: Iterable[bytes] | bytes) -> Iterator[bytes]:
        assert isinstance(body, bytes)
        assert has_stream_request.wait(10)
        yield body

    def answer(request: ReceivedRequest) -> ScriptedReply:
        if request.method != "POST":
            has_stream_request.set()
            return error_reply(405)
        message = request.json()
        if "id" not in message:
            return ScriptedReply(202)
        response = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "initialize":
            version, server_info = message["params"]["protocolVersion"], {"name": "No tools", "version": "1"}
            response["result"] = {"protocolVersion": version, "capabilities": {}, "serverInfo": server_info}
            return json_reply(response, headers={"mcp-session-id": "session"})  # without a session there is no stream
        reply = json_reply(response | {"error": {"code": -32601, "message": "Method not found"}})
        if message["method"] != "tools/list":
            return reply
        return replace(reply, body=fail_after_stream_request(reply.body), ending=ConnectionEnd.CLOSE)

    with ScriptedServer(answer) as server, pytest.raises(ToolListError, match="error -32601 instead"):
        list_mcp_tools(McpServer(url=f"{server.base_url}/mcp"))
    assert has_stream_request.is_set()


def test_list_mcp_tools_of_a_server_that_reserves_much_address_space() -> None:
    reserve = f"import mmap, runpy; reserved = mmap.mmap(-1, {4 * MAX_MEMORY_BYTES}, prot=0); "
    run = f"import sys; sys.argv = ['', 'stdio']; runpy.run_path({SERVER_FILE!r}, run_name='__main__')"
    server = McpServer(command=sys.executable, arguments=("-c", reserve + run))
    assert list_mcp_tools(server).server == "Weather desk"


@pytest.mark.parametrize("command", ["/usr/bin/yes", "/bin/sleep"])
def test_list_mcp_tools_ends_a_silent_server_at_the_time_limit(command: str) -> None:
    with pytest.raises(ToolListError, match="within 3 seconds"):
        list_mcp_tools(McpServer(command=command, arguments=("60",)), timeout=3)


@pytest.mark.parametrize(
    ("ending", "sentence", "timeout"),
    [
        ("os.kill(os.getppid(), signal.SIGKILL)", "the process that reads it failed", 20),
        ("pass", "within 8 seconds", 8),  # long enough to start three processes on a busy machine
    ],
)
def test_list_mcp_tools_leaves_no_process_of_a_hanging_server(
    ending: str, sentence: str, timeout: float, tmp_path: Path
) -> None:
    """The server and its child ignore the end of their input and SIGTERM."""
    pids_file = tmp_path / "pids"
    code = f"""
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if (child := os.fork()) == 0:
    os.setsid()
else:
    with open({str(pids_file)!r}, "w") as file:
        file.write(f"{{os.getpid()}} {{child}}")
    {ending}
time.sleep(30)
"""
    with pytest.raises(ToolListError, match=sentence):
        list_mcp_tools(McpServer(command=sys.executable, arguments=("-c", code)), timeout=timeout)
    pids = list(map(int, pids_file.read_text().split()))
    assert len(pids) == 2
    assert not any(map(is_running, pids))


def is_running(pid: int) -> bool:
    """Return whether there is a process of this number that is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_describe_error_of_a_request_that_timed_out_is_no_other_server() -> None:
    assert "did not answer within" in describe_error(MCPError(REQUEST_TIMEOUT, "Request timed out"), [])


def test_describe_error_at_the_total_limit_gives_its_seconds() -> None:
    assert describe_error(TimeoutError(), []) == f"The server did not list its tools within {TOTAL_SECONDS} seconds."
