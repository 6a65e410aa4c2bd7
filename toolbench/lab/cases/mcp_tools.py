"""Drafts of test cases from tools of MCP servers, and the servers that the administrator configured."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from pydantic import BaseModel, Field, ValidationError

from toolbench.engine.types import JsonObject
from toolbench.lab.cases.drafts import CaseDraft, render_json
from toolbench.providers.mcp.server import McpServer, McpTool, ToolListError


class _ServerEntry(BaseModel):
    """Server in the file of configured servers. The file has the same format as those of other MCP clients."""

    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    command: str = ""
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)


class _ServerFile(BaseModel):
    """File of configured servers, by name."""

    servers: dict[str, _ServerEntry] = Field(alias="mcpServers")


def read_configured_servers() -> dict[str, McpServer]:
    """Return the servers of the file that `settings.MCP_SERVERS_FILE` names, by name; {} if there is no file.

    Raises:
        ToolListError: the file cannot be read or has another format.
    """
    path = Path(settings.MCP_SERVERS_FILE)
    try:
        servers = _ServerFile.model_validate_json(path.read_bytes()).servers
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError):
        raise ToolListError(
            f"The file {path.name} cannot be read. It must contain "
            '{"mcpServers": {"NAME": {"command": "…", "args": […]}}}, or a url instead of the command.'
        ) from None
    return {name: _build_server(entry) for name, entry in servers.items()}


def _build_server(entry: _ServerEntry) -> McpServer:
    """Return the server of an entry. Of its headers, only Authorization is used; a command beside a URL is ignored."""
    headers = {name.lower(): value for name, value in entry.headers.items()}
    return McpServer(
        url=entry.url,
        authorization=headers.get("authorization", ""),
        command="" if entry.url else entry.command,
        arguments=tuple(entry.args),
        environment=entry.env,
    )


def build_tool_definitions(tools: Sequence[McpTool]) -> list[JsonObject]:
    """Return the tools in the format of `tools` in a chat completions request."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]


def render_tool(tool: McpTool) -> str:
    """Return the tool as JSON that `build_draft_from_tools` reads."""
    return json.dumps(
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters, "output": tool.output}
    )


def build_draft_from_tools(texts: Sequence[str]) -> CaseDraft:
    """Return the draft of a case with these tools.

    A tool with an output schema returns a value that is generated from the schema.

    Args:
        texts: the result of `render_tool` for each tool.

    Raises:
        ToolListError: there is no tool, or a text is not a tool.
    """
    tools = [_parse_tool(text) for text in texts]
    if not tools:
        raise ToolListError("Choose at least one tool.")
    results = {tool.name: {"generated": tool.output} for tool in tools if tool.output}
    return CaseDraft(tools=render_json(build_tool_definitions(tools)), results=render_json(results) if results else "")


def _parse_tool(text: str) -> McpTool:
    try:
        members: Any = json.loads(text)
        tool = McpTool(**members)
    except (ValueError, TypeError, RecursionError):
        raise ToolListError("The chosen tools cannot be read. Read them from the server again.") from None
    texts, schemas = (tool.name, tool.description), (tool.parameters, tool.output or {})
    if not all(isinstance(text, str) for text in texts) or not all(isinstance(schema, dict) for schema in schemas):
        raise ToolListError("The chosen tools cannot be read. Read them from the server again.")
    return tool
