"""Page that reads tools from an MCP server into a new test case."""

import html
import json
import re
import sys
from pathlib import Path

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from tests.page_html import read_html
from tests.providers.mcp.test_listing import SERVER_FILE
from toolbench.lab.models import Case

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def configured_server(settings: Settings, tmp_path: Path) -> None:
    settings.MCP_SERVERS_FILE = tmp_path / "servers.json"
    entry = {"command": sys.executable, "args": [SERVER_FILE, "stdio"]}
    settings.MCP_SERVERS_FILE.write_text(json.dumps({"mcpServers": {"weather": entry}}))


def test_mcp_page_puts_chosen_tools_into_new_case(owner_client: Client) -> None:
    page = read_html(owner_client.post("/cases/mcp/", {"server": "weather"}))
    tools = [html.unescape(value) for value in re.findall(r'name="tool" value="([^"]+)"', page)]
    assert len(tools) == 2
    filled = owner_client.post("/cases/mcp/", {"choose": "1", "tool": tools[0]})
    assert 'action="/cases/new/"' in read_html(filled)
    form = filled.context["form"]
    typed = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    expected = '{"name": "get_weather", "arguments": {"city": "Berlin"}}'
    owner_client.post("/cases/new/", typed | {"message": "Berlin?", "expect": expected, "save": "1"})
    assert "get_weather" in Case.objects.get().versions.get().definition


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"url": ""}, "Enter the address of a server."),
        ({"url": "javascript:alert(1)"}, "This is not an address"),
        ({"url": "http://127.0.0.1:1/"}, "No server answers at this address"),
        ({"url": "x\0y"}, "Null characters are not allowed."),
        ({"server": "unknown"}, "Select a valid choice"),
        ({"choose": "1"}, "Choose at least one tool."),
        ({"choose": "1", "tool": "{"}, "cannot be read"),
    ],
)
def test_mcp_page_explains_bad_input(owner_client: Client, fields: dict[str, str], sentence: str) -> None:
    response = owner_client.post("/cases/mcp/", fields)
    assert response.status_code == 422
    assert sentence in read_html(response)


def test_mcp_page_keeps_server_if_no_tool_is_chosen(owner_client: Client) -> None:
    page = read_html(owner_client.post("/cases/mcp/", {"server": "weather"}))
    hidden = dict(re.findall(r'type="hidden" name="(server|url)" value="([^"]*)"', page))
    assert hidden == {"server": "weather", "url": ""}
    page = read_html(owner_client.post("/cases/mcp/", {"choose": "1"} | hidden))
    assert '<option value="weather" selected>' in page


def test_mcp_page_does_not_repeat_authorization(owner_client: Client) -> None:
    page = read_html(owner_client.post("/cases/mcp/", {"url": "http://127.0.0.1:1/", "authorization": "Bearer s3cret"}))
    assert "s3cret" not in page
