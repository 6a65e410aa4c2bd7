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


@pytest.mark.parametrize(
    ("variable", "source", "sentence"),
    [
        ("EXAMPLE_MISTYPED", ("--url", "http://127.0.0.1:9/mcp"), "EXAMPLE_MISTYPED is not set"),
        ("EXAMPLE_EMPTY", ("--url", "http://127.0.0.1:9/mcp"), "EXAMPLE_EMPTY is not set"),
        ("EXAMPLE_SET", ("--server", "tools"), "only with --url"),
        ("EXAMPLE_SET", ("/nonexistent",), "only with --url"),
    ],
)
def test_mcp_tools_refuses_authorization_that_is_not_sent(
    variable: str, source: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXAMPLE_EMPTY", "")
    monkeypatch.setenv("EXAMPLE_SET", "Bearer x")
    with pytest.raises(CommandError, match=sentence) as raised:
        call_command("mcp_tools", "--authorization-from", variable, *source)
    assert raised.value.returncode == 2
