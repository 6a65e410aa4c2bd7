"""Configured servers, and drafts of cases with the tools of a server."""

import json
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from toolbench.lab.cases.drafts import parse_draft
from toolbench.lab.cases.mcp_tools import build_draft_from_tools, read_configured_servers, render_tool
from toolbench.providers.mcp.server import McpServer, McpTool, ToolListError

OUTPUT = {"type": "object", "properties": {"sky": {"type": "string"}}, "required": ["sky"]}
WEATHER = McpTool("get_weather", "Weather.", {"type": "object", "properties": {"city": {"type": "string"}}}, OUTPUT)
DELETE = McpTool("delete_city", "", {"type": "object"}, None)


def test_build_draft_from_tools_generates_results_from_output_schema() -> None:
    draft = build_draft_from_tools([render_tool(WEATHER), render_tool(DELETE)])
    assert [tool["function"]["name"] for tool in json.loads(draft.tools)] == ["get_weather", "delete_city"]
    assert json.loads(draft.results) == {"get_weather": {"generated": OUTPUT}}


def test_build_draft_from_tools_parses_as_case() -> None:
    draft = build_draft_from_tools([render_tool(WEATHER)])
    expectation = '{"name": "get_weather", "arguments": {"city": "Berlin"}}'
    _, case = parse_draft(type(draft)(tools=draft.tools, results=draft.results, message="Hi", expect=expectation))
    assert [tool["function"]["name"] for tool in case.tools] == ["get_weather"]


@pytest.mark.parametrize("texts", [[], ["{"], ["[]"], ["[" * 100_000], ['{"name": "f"}'], [render_tool(WEATHER), "1"]])
def test_build_draft_from_tools_refuses_invalid_tool_text(texts: list[str]) -> None:
    with pytest.raises(ToolListError):
        build_draft_from_tools(texts)


def test_read_configured_servers_reads_file_of_mcp_clients(settings: Settings, tmp_path: Path) -> None:
    settings.MCP_SERVERS_FILE = tmp_path / "servers.json"
    assert read_configured_servers() == {}
    document = {
        "mcpServers": {
            "files": {"command": "npx", "args": ["server", "."], "env": {"A": "b"}, "disabled": False},
            "remote": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer x"}},
        }
    }
    settings.MCP_SERVERS_FILE.write_text(json.dumps(document))
    assert read_configured_servers() == {
        "files": McpServer(command="npx", arguments=("server", "."), environment={"A": "b"}),
        "remote": McpServer(url="https://example.org/mcp", authorization="Bearer x"),
    }


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": {"a": {"command": 3}}}'])
def test_read_configured_servers_unreadable_file_is_named(text: str, settings: Settings, tmp_path: Path) -> None:
    settings.MCP_SERVERS_FILE = tmp_path / "servers.json"
    settings.MCP_SERVERS_FILE.write_text(text)
    with pytest.raises(ToolListError, match=r"servers\.json"):
        read_configured_servers()
