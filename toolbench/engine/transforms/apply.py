"""The six places where transforms are applied.

Each function returns a new value and the changes, and never changes its argument. Unknown names are ignored; call
`check_names` first to refuse them.
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
    kind.kind: kind for kind in (MESSAGE, TOOL, REQUEST, RESPONSE, TOOL_CALL, TOOL_RESULT)
}


def list_names(kind: str) -> tuple[str, ...]:
    """Return all names of a kind: message, tool, request, response, tool_call or tool_result."""
    return KINDS[kind].names()


def describe_transform(kind: str, name: str) -> str:
    """Return what a transform does.

    Raises:
        UnknownTransformError: there is no such transform.
    """
    return KINDS[kind].describe(name)


def check_names(kind: str, names: Iterable[str], *, strict: bool = True) -> tuple[str, ...]:
    """Return the known names in canonical form.

    Raises:
        UnknownTransformError: a name is unknown; only if `strict` is set.
    """
    return KINDS[kind].check(names, strict=strict)


def apply_message(
    messages: Sequence[Message], names: Iterable[str], facts: TransformContext = EMPTY_CONTEXT
) -> tuple[list[Message], Changes]:
    """Transform the messages of a request."""
    return MESSAGE.apply(list(messages), names, facts)


def apply_tools(tools_json: Sequence[JsonObject], names: Iterable[str]) -> tuple[list[JsonObject], Changes]:
    """Transform the tool definitions of a request, in OpenAI's format."""
    return TOOL.apply(list(tools_json), names)


def apply_request(body: JsonObject, names: Iterable[str]) -> tuple[JsonObject, Changes]:
    """Transform the body of a request, in the format of chat completions."""
    return REQUEST.apply(body, names)


def apply_response(
    message: Message, names: Iterable[str], facts: TransformContext = EMPTY_CONTEXT
) -> tuple[Message, Changes]:
    """Transform the assistant message of an answer."""
    return RESPONSE.apply(message, names, facts)


def apply_calls(calls: Sequence[JsonObject], names: Iterable[str]) -> tuple[list[JsonObject], Changes]:
    """Transform the calls of one answer, in OpenAI's format."""
    return TOOL_CALL.apply(list(calls), names)


def apply_result(
    envelope_json: JsonObject, names: Iterable[str], *, tool_name: str = "", call_id: str = ""
) -> tuple[JsonObject, Changes]:
    """Transform the envelope of one tool result.

    Changes of several results may stand in one list, so their paths begin with the call: `$['call_1'].data`.
    """
    value, changes = TOOL_RESULT.apply(envelope_json, names)
    whose = call_id or tool_name
    root = f"$['{whose}']" if whose else "$"
    return value, tuple(replace(change, path=root + change.path[1:]) for change in changes)
