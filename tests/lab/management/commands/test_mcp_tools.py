"""`manage.py mcp_tools`: the tools of a server in the form of a request."""

import json
import sys
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.providers.mcp.test_listing import SERVER_FILE


def test_tools_of_a_command_are_printed_as_a_request_has_them() -> None:
    output = StringIO()
    call_command("mcp_tools", sys.executable, SERVER_FILE, "stdio", stdout=output)
    tools = json.loads(output.getvalue())
    assert [(tool["type"], tool["function"]["name"]) for tool in tools] == [
        ("function", "get_weather"),
        ("function", "delete_city"),
    ]


@pytest.mark.parametrize("arguments", [("--url", "nowhere"), ("--server", "unknown"), ("/nonexistent",)])
def test_a_server_that_is_none_ends_with_2(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError) as caught:
        call_command("mcp_tools", *arguments)
    assert caught.value.returncode == 2
