"""Transforms of the tool definitions of a request."""

from toolbench.engine.transforms.registry import TransformKind
from toolbench.engine.types import JsonObject

TOOL: TransformKind[list[JsonObject]] = TransformKind("tool")


@TOOL.register
def openai_tools_strip_function_descriptions(tools: list[JsonObject]) -> list[JsonObject]:
    """Send tools without the description of the function; descriptions of parameters stay."""
    stripped_tools = [_remove_description(tool) for tool in tools]
    return stripped_tools if any(old is not new for old, new in zip(tools, stripped_tools, strict=True)) else tools


def _remove_description(tool: JsonObject) -> JsonObject:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or "description" not in function:
        return tool
    return {**tool, "function": {key: value for key, value in function.items() if key != "description"}}
