"""`manage.py mcp_tools --url https://example.org/mcp`: print the tools of an MCP server as JSON for a request.

`manage.py mcp_tools -- npx some-server` starts a server by a command; `--server NAME` uses a configured server.
"""

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.lab.cases.drafts import render_json
from toolbench.lab.cases.mcp_tools import build_tool_definitions, read_configured_servers
from toolbench.lab.management.known_names import REFUSED_EXIT_CODE
from toolbench.providers.mcp.listing import list_mcp_tools
from toolbench.providers.mcp.server import McpServer, ToolListError


class Command(BaseCommand):
    """Command that prints the tools of an MCP server."""

    help = "Print the tools of an MCP server as JSON for a test case or a chat completions request. No tool is called."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("--url", help="address of a server with the streamable HTTP transport")
        source.add_argument("--server", metavar="NAME", help="name of a server in the file TOOLBENCH_MCP_SERVERS")
        source.add_argument(
            "command", nargs="*", default=[], help="command that starts a server with the stdio transport, after --"
        )
        parser.add_argument(
            "--authorization-from",
            metavar="VARIABLE",
            default="",
            help="with --url: environment variable with the value of the Authorization header",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the tools.

        Raises:
            CommandError: the server is unknown or does not list its tools, the file of servers cannot be read, or the
                value of the Authorization header cannot be read or used.
        """
        try:
            tool_list = list_mcp_tools(_find_server(options))
        except ToolListError as error:
            raise CommandError(str(error), returncode=REFUSED_EXIT_CODE) from error
        if not tool_list.is_complete:
            self.stderr.write(f"The server has more than {len(tool_list.tools)} tools; the others were not read.")
        self.stdout.write(render_json(build_tool_definitions(tool_list.tools)))


def _find_server(options: dict[str, Any]) -> McpServer:
    """Return the server that the options name.

    Raises:
        ToolListError: the name is unknown, the file of servers cannot be read, the variable `authorization_from` is not
            set or is empty, or this option is used without `url`.
    """
    if options["authorization_from"] and not options["url"]:
        raise ToolListError("Use --authorization-from only with --url: other servers get no header from it.")
    if options["command"]:
        return McpServer(command=options["command"][0], arguments=tuple(options["command"][1:]))
    if options["url"]:
        return McpServer(url=options["url"], authorization=_read_authorization(options["authorization_from"]))
    servers = read_configured_servers()
    if options["server"] not in servers:
        names = ", ".join(servers) or "none"
        raise ToolListError(f"There is no configured server {options['server']}. Configured servers: {names}.")
    return servers[options["server"]]


def _read_authorization(variable: str) -> str:
    """Return the value of an environment variable; "" if `variable` is empty.

    Raises:
        ToolListError: the variable is not set or is empty.
    """
    if variable and not os.environ.get(variable):
        raise ToolListError(f"The environment variable {variable} is not set. Set it to the Authorization header.")
    return os.environ[variable] if variable else ""
