"""Transforms of the calls of one answer, after they were read and before their arguments are parsed."""

from toolbench.engine.messages import JsonObject
from toolbench.engine.transforms.registry import TransformKind

TOOL_CALL: TransformKind[list[JsonObject]] = TransformKind("tool_call")


@TOOL_CALL.register
def assistant_tool_calls_arguments_blank_to_empty_object(calls: list[JsonObject]) -> list[JsonObject]:
    """Arguments that are blank text are read as an empty object."""
    filled = [_filled(call) for call in calls]
    return filled if any(old is not new for old, new in zip(calls, filled, strict=True)) else calls


def _filled(call: JsonObject) -> JsonObject:
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(arguments, str) or arguments.strip():
        return call
    return {**call, "function": {**function, "arguments": "{}"}}
