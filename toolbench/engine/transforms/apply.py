"""Functions that apply transforms, one for each kind of value.

Each of them applies the named transforms in the given order. It returns the new value and the changes, and never
modifies its argument; without changes, the new value is equal to the argument. Unknown names are ignored; call
`check_names` first to refuse them. Names are normalised with `normalise_name`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from toolbench.engine.transforms.calls import TOOL_CALL
from toolbench.engine.transforms.reasoning import MESSAGE
from toolbench.engine.transforms.registry import EMPTY_CONTEXT, TransformContext, TransformKind
from toolbench.engine.transforms.requests import REQUEST
from toolbench.engine.transforms.responses import RESPONSE
from toolbench.engine.transforms.results import TOOL_RESULT
from toolbench.engine.transforms.tools import TOOL
from toolbench.engine.types import JsonObject, Message, TransformChange

Changes = tuple[TransformChange, ...]

KINDS: dict[str, TransformKind[Any]] = {
    transform_kind.kind: transform_kind for transform_kind in (MESSAGE, TOOL, REQUEST, RESPONSE, TOOL_CALL, TOOL_RESULT)
}


def list_names(kind: str) -> tuple[str, ...]:
    """Return the names of all transforms of a kind, which is a key of `KINDS`."""
    return KINDS[kind].list_names()


def check_names(kind: str, names: Iterable[str], *, strict: bool = True) -> tuple[str, ...]:
    """Return the known names in the given order and in the form of `normalise_name`.

    Blank names are left out.

    Args:
        kind: a key of `KINDS`.
        names: names of transforms.
        strict: whether an unknown name is an error; if not, it is left out.

    Raises:
        UnknownTransformError: a name is unknown, and `strict` is set.
    """
    return KINDS[kind].check_names(names, strict=strict)


def apply_message(
    messages: Sequence[Message], names: Iterable[str], context: TransformContext = EMPTY_CONTEXT
) -> tuple[list[Message], Changes]:
    """Return the transformed messages of a request, and the changes."""
    return MESSAGE.apply(list(messages), names, context)


def apply_tools(tools_json: Sequence[JsonObject], names: Iterable[str]) -> tuple[list[JsonObject], Changes]:
    """Return the transformed tool definitions of a request, in OpenAI's format, and the changes."""
    return TOOL.apply(list(tools_json), names)


def apply_request(body: JsonObject, names: Iterable[str]) -> tuple[JsonObject, Changes]:
    """Return the transformed body of a chat completions request, and the changes."""
    return REQUEST.apply(body, names)


def apply_response(
    message: Message, names: Iterable[str], context: TransformContext = EMPTY_CONTEXT
) -> tuple[Message, Changes]:
    """Return the transformed assistant message of an answer, and the changes."""
    return RESPONSE.apply(message, names, context)


def apply_calls(calls: Sequence[JsonObject], names: Iterable[str]) -> tuple[list[JsonObject], Changes]:
    """Return the transformed calls of one answer, in OpenAI's format, and the changes."""
    return TOOL_CALL.apply(list(calls), names)


def apply_result(
    envelope_json: JsonObject, names: Iterable[str], *, tool_name: str = "", call_id: str = ""
) -> tuple[JsonObject, Changes]:
    """Return the transformed envelope of one tool result, and the changes.

    The path of a change names the call, since callers report the changes of several results in one list. It begins with
    the call id, as in `$['call_1'].data`; without an id, with the tool's name; without both, with `$`.
    """
    value, changes = TOOL_RESULT.apply(envelope_json, names)
    call_label = call_id or tool_name
    path_root = f"$['{call_label}']" if call_label else "$"
    return value, tuple(replace(change, path=path_root + change.path[1:]) for change in changes)
