"""`manage.py mcp_tools`: the tools of a server as tools of a request."""

import json
import sys
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.providers.mcp.test_listing import SERVER_FILE


def test_mcp_tools_prints_tools_of_a_server_in_request_form() -> None:
    output = StringIO()
    call_command("mcp_tools", sys.executable, SERVER_FILE, "stdio", stdout=output)
    tools = json.loads(output.getvalue())
    assert [(tool["type"], tool["function"]["name"]) for tool in tools] == [
        ("function", "get_weather"),
        ("function", "delete_city"),
    ]


@pytest.mark.parametrize("arguments", [("--url", "nowhere"), ("--server", "unknown"), ("/nonexistent",)])
def test_mcp_tools_of_an_unusable_server_exits_with_2(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError) as raised:
        call_command("mcp_tools", *arguments)
    assert raised.value.returncode == 2
