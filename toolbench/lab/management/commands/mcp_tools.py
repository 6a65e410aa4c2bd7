"""`manage.py mcp_tools --url https://example.org/mcp`: print the tools of an MCP server as a request has them.

`manage.py mcp_tools -- npx some-server` starts a command and asks it; `--server NAME` asks a configured one.
"""

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.lab.cases.drafts import render_json
from toolbench.lab.cases.mcp_tools import build_tool_definitions, read_configured_servers
from toolbench.providers.mcp.listing import list_mcp_tools
from toolbench.providers.mcp.server import McpServer, ToolListError

REFUSED_EXIT_CODE = 2


class Command(BaseCommand):
    """Command that prints tools of an MCP server."""

    help = "Prints the tools of an MCP server as JSON, as a case or a request to OpenAI has them. No tool is called."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("--url", help="address of a server that speaks streamable HTTP")
        source.add_argument("--server", metavar="NAME", help="server of the file that TOOLBENCH_MCP_SERVERS names")
        source.add_argument("command", nargs="*", default=[], help="command of a server that speaks stdio, after --")
        parser.add_argument(
            "--authorization-from", metavar="VARIABLE", default="", help="variable with the header Authorization"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the tools.

        Raises:
            CommandError: the server is not known or does not list its tools.
        """
        try:
            listed = list_mcp_tools(_find_server(options))
        except ToolListError as error:
            raise CommandError(str(error), returncode=REFUSED_EXIT_CODE) from error
        if not listed.is_complete:
            self.stderr.write(f"The server has more than {len(listed.tools)} tools; the others were not read.")
        self.stdout.write(render_json(build_tool_definitions(listed.tools)))


def _find_server(options: dict[str, Any]) -> McpServer:
    if options["command"]:
        return McpServer(command=options["command"][0], arguments=tuple(options["command"][1:]))
    if options["url"]:
        return McpServer(url=options["url"], authorization=os.environ.get(options["authorization_from"], ""))
    servers = read_configured_servers()
    if options["server"] not in servers:
        names = ", ".join(servers) or "there is none"
        raise ToolListError(f"There is no server {options['server']} in the file of servers; known: {names}.")
    return servers[options["server"]]
