"""Transforms of the calls of one answer, before their arguments are parsed."""

import re
from collections.abc import Iterator

from toolbench.engine.strict_json import find_object, write_json
from toolbench.engine.transforms.registry import TransformKind
from toolbench.engine.types import JsonObject

TOOL_CALL: TransformKind[list[JsonObject]] = TransformKind("tool_call")

PARALLEL_TOOL_NAMES = ("multi_tool_use.parallel", "multi_tool_use_parallel", "parallel")
_NAMESPACE = "functions."
# Beginning of a chat template's special token that a model wrote into a name, such as `<|call|>` or `[/INST]`.
LEAKED_TOKEN = re.compile(r"<[|｜]|\[/?[A-Z_]+\]")


@TOOL_CALL.register
def assistant_tool_calls_arguments_blank_to_empty_object(calls: list[JsonObject]) -> list[JsonObject]:
    """Replace arguments that are blank text by `{}`."""
    filled_calls = [_fill_arguments(call) for call in calls]
    return filled_calls if any(old is not new for old, new in zip(calls, filled_calls, strict=True)) else calls


@TOOL_CALL.register
def multi_tool_use_parallel_to_calls(calls: list[JsonObject]) -> list[JsonObject]:
    """Replace a call of multi_tool_use.parallel by the calls that it lists.

    Some OpenAI models invent this tool, also under the other names in PARALLEL_TOOL_NAMES.
    """
    unpacked_calls = [inner_call for call in calls for inner_call in _unpack_parallel(call)]
    return unpacked_calls if len(unpacked_calls) != len(calls) or unpacked_calls != calls else calls


@TOOL_CALL.register
def tool_call_names_cleaned(calls: list[JsonObject]) -> list[JsonObject]:
    """Remove from tool names the prefix `functions.`, and a leaked special token with all text after it."""
    cleaned_calls = [_clean_name(call) for call in calls]
    return cleaned_calls if any(old is not new for old, new in zip(calls, cleaned_calls, strict=True)) else calls


def _unpack_parallel(call: JsonObject) -> Iterator[JsonObject]:
    """Yield the calls that a call of the invented tool lists.

    If the call is of another tool, or its list is empty or unreadable, yield the call itself.
    """
    name, arguments = _get_name_and_arguments(call)
    tool_uses = _list_tool_uses(arguments) if name in PARALLEL_TOOL_NAMES else []
    if not tool_uses:
        yield call
    for position, tool_use in enumerate(tool_uses, start=1):
        parameters = tool_use.get("parameters")
        function = {
            "name": str(tool_use["recipient_name"]).removeprefix(_NAMESPACE),
            "arguments": parameters if isinstance(parameters, str) else write_json(parameters or {}),
        }
        yield {**call, "id": f"{call.get('id') or 'call'}_{position}", "type": "function", "function": function}


def _list_tool_uses(arguments: object) -> list[JsonObject]:
    """Return the listed calls; [] if there is no readable list, or if a listed call has no name."""
    value = find_object(arguments) if isinstance(arguments, str) else arguments
    tool_uses = value.get("tool_uses") if isinstance(value, dict) else None
    is_named = isinstance(tool_uses, list) and all(
        isinstance(tool_use, dict) and isinstance(tool_use.get("recipient_name"), str) for tool_use in tool_uses
    )
    return tool_uses if isinstance(tool_uses, list) and is_named else []


def _clean_name(call: JsonObject) -> JsonObject:
    """Return the call with a cleaned name; the same object if nothing is removed, or nothing would be left."""
    name, _ = _get_name_and_arguments(call)
    cleaned_name = LEAKED_TOKEN.split(name, maxsplit=1)[0].strip().removeprefix(_NAMESPACE)
    if cleaned_name == name or not cleaned_name:
        return call
    return {**call, "function": {**call["function"], "name": cleaned_name}}


def _get_name_and_arguments(call: JsonObject) -> tuple[str, object]:
    """Return the tool's name and the arguments of a call as received; ("", None) if the call has no name."""
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return (name, function.get("arguments")) if isinstance(function, dict) and isinstance(name, str) else ("", None)


def _fill_arguments(call: JsonObject) -> JsonObject:
    """Return the call with `{}` for arguments that are blank text; the same object for any others."""
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(arguments, str) or arguments.strip():
        return call
    return {**call, "function": {**function, "arguments": "{}"}}
