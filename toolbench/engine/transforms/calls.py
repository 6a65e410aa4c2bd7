"""Transforms of the calls of one answer, before their arguments are parsed."""

import re
from collections.abc import Iterator

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import read_json, write_json
from toolbench.engine.transforms.registry import TransformKind
from toolbench.engine.types import JsonObject

TOOL_CALL: TransformKind[list[JsonObject]] = TransformKind("tool_call")

PARALLEL_TOOL_NAMES = ("multi_tool_use.parallel", "multi_tool_use_parallel", "parallel")
_NAMESPACE = "functions."
LEAKED_TOKEN = re.compile(r"<[|｜]|\[/?[A-Z_]+\]")


@TOOL_CALL.register
def assistant_tool_calls_arguments_blank_to_empty_object(calls: list[JsonObject]) -> list[JsonObject]:
    """Read blank arguments as an empty object."""
    filled = [_fill_arguments(call) for call in calls]
    return filled if any(old is not new for old, new in zip(calls, filled, strict=True)) else calls


@TOOL_CALL.register
def multi_tool_use_parallel_to_calls(calls: list[JsonObject]) -> list[JsonObject]:
    """Replace a call of multi_tool_use.parallel by the calls that it lists.

    No application has this tool; some OpenAI models invent it.
    """
    unpacked = [inner for call in calls for inner in _unpack_parallel(call)]
    return unpacked if len(unpacked) != len(calls) or unpacked != calls else calls


@TOOL_CALL.register
def tool_call_names_cleaned(calls: list[JsonObject]) -> list[JsonObject]:
    """Remove leaked special tokens, all that follows them, and the namespace functions. from names."""
    cleaned = [_clean_name(call) for call in calls]
    return cleaned if any(old is not new for old, new in zip(calls, cleaned, strict=True)) else calls


def _unpack_parallel(call: JsonObject) -> Iterator[JsonObject]:
    name, arguments = _get_name_and_arguments(call)
    uses = _list_tool_uses(arguments) if name in PARALLEL_TOOL_NAMES else []
    if not uses:
        yield call
    for position, use in enumerate(uses, start=1):
        parameters = use.get("parameters")
        function = {
            "name": str(use["recipient_name"]).removeprefix(_NAMESPACE),
            "arguments": parameters if isinstance(parameters, str) else write_json(parameters or {}),
        }
        yield {**call, "id": f"{call.get('id') or 'call'}_{position}", "type": "function", "function": function}


def _list_tool_uses(arguments: object) -> list[JsonObject]:
    """Return the listed calls, or [] if one of them has no name, so that the original call is kept as a whole."""
    try:
        value = read_json(arguments) if isinstance(arguments, str) else arguments
    except InvalidJsonError:
        return []
    uses = value.get("tool_uses") if isinstance(value, dict) else None
    is_named = isinstance(uses, list) and all(
        isinstance(use, dict) and isinstance(use.get("recipient_name"), str) for use in uses
    )
    return uses if isinstance(uses, list) and is_named else []


def _clean_name(call: JsonObject) -> JsonObject:
    name, _ = _get_name_and_arguments(call)
    clean = LEAKED_TOKEN.split(name, maxsplit=1)[0].strip().removeprefix(_NAMESPACE)
    if clean == name or not clean:
        return call
    return {**call, "function": {**call["function"], "name": clean}}


def _get_name_and_arguments(call: JsonObject) -> tuple[str, object]:
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return (name, function.get("arguments")) if isinstance(function, dict) and isinstance(name, str) else ("", None)


def _fill_arguments(call: JsonObject) -> JsonObject:
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(arguments, str) or arguments.strip():
        return call
    return {**call, "function": {**function, "arguments": "{}"}}
