"""Address of an MCP server, and its list of tools."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_TOOLS = 500  # further tools of a server are left out
MAX_ANSWER_BYTES = 5_000_000  # of the JSON that the child process writes


class ToolListError(Exception):
    """Failure to get a list of tools. Its text is a sentence for users."""


@dataclass(frozen=True, slots=True)
class McpServer:
    """MCP server with streamable HTTP, or a command that is an MCP server on its standard streams.

    Attributes:
        url: address of the streamable HTTP endpoint; "" for a command.
        authorization: value of the header Authorization, "" for none; never stored and never part of a message.
        command: program to start; "" for HTTP.
        arguments: arguments of the program.
        environment: variables that the program gets in addition to a few harmless ones, such as PATH and HOME.
    """

    url: str = ""
    authorization: str = field(default="", repr=False)
    command: str = ""
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class McpTool:
    """Tool of an MCP server.

    Attributes:
        name: name of the tool.
        description: description of the tool, "" if the server sends none.
        parameters: JSON Schema of its arguments.
        output: JSON Schema of its result; None if the server declares none.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    output: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ToolList:
    """Tools of an MCP server.

    Attributes:
        server: name that the server sends, "" for none.
        tools: the tools in the order of the server, at most `MAX_TOOLS`.
        is_complete: whether the server has no further tools.
    """

    server: str
    tools: tuple[McpTool, ...]
    is_complete: bool
