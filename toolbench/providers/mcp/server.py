"""The address of an MCP server, and what it says of its tools."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_TOOLS = 500  # tools read from one server; more are left out
MAX_ANSWER_BYTES = 5_000_000


class ToolListError(Exception):
    """List of tools that could not be read; the text is a sentence for the user."""


@dataclass(frozen=True, slots=True)
class McpServer:
    """Server that is reached over HTTP, or started as a command that speaks over its standard streams.

    Attributes:
        url: address of the streamable HTTP endpoint; empty for a command.
        authorization: value of the header Authorization, or empty; never stored and never part of a message.
        command: program to start; empty for HTTP.
        arguments: arguments of the program.
        environment: variables that the program gets beside a few harmless ones (PATH, HOME, …).
    """

    url: str = ""
    authorization: str = field(default="", repr=False)
    command: str = ""
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class McpTool:
    """Tool of a server.

    Attributes:
        parameters: JSON Schema of its arguments.
        output: JSON Schema of its result; None if the server declares none.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    output: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ToolList:
    """Tools of a server in its own order.

    Attributes:
        server: name that the server gives itself; may be empty.
        is_complete: False if more than MAX_TOOLS tools were announced.
    """

    server: str
    tools: tuple[McpTool, ...]
    is_complete: bool
