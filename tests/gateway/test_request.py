import json

from toolbench.engine.sized_cache import MAX_CACHED_BYTES
from toolbench.gateway.request import GatewayTool, build_registry


def build_tool(name: str, characters: int) -> GatewayTool:
    return GatewayTool(name, "d" * characters, json.dumps({"type": "object"}))


def test_build_registry_keeps_equal_tools_until_others_fill_the_memory() -> None:
    small = build_registry([build_tool("small", 10)])
    assert build_registry([build_tool("small", 10)]) is small
    for number in range(5):
        build_registry([build_tool(f"large_{number}", MAX_CACHED_BYTES // 4)])
    assert build_registry([build_tool("small", 10)]) is not small
