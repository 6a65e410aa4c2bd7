"""MCP server of the tests, made with the official SDK: `python weather_server.py stdio` or `… http PORT`."""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("Weather desk")


@server.tool()
def get_weather(city: str, unit: str = "C") -> dict[str, int]:
    """Return the weather of a city."""
    raise AssertionError("A tool was called.")


@server.tool()
def delete_city(city: str) -> None:
    """Delete a city."""
    raise AssertionError("A tool was called.")


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", port=int(sys.argv[2]))
