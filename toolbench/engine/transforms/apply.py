"""The six places where transforms are applied. Each gives a new value and what changed, and never touches what it was
given; unknown names are ignored (ask `check_names` first to refuse them)."""

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
    """All names of a kind: message, tool, request, response, tool_call or tool_result."""
    return KINDS[kind].names()


def describe_transform(kind: str, name: str) -> str:
    """One sentence on what a transform does. Raises UnknownTransformError."""
    return KINDS[kind].describe(name)


def check_names(kind: str, wanted: Iterable[str], *, strict: bool = True) -> tuple[str, ...]:
    """The known names among those wanted, in canonical form. Strict: raises UnknownTransformError if any is unknown."""
    return KINDS[kind].check(wanted, strict=strict)


def apply_message(
    messages: Sequence[Message], names: Iterable[str], facts: TransformContext = EMPTY_CONTEXT
) -> tuple[list[Message], Changes]:
    """Messages on their way out."""
    return MESSAGE.apply(list(messages), names, facts)


def apply_tools(tools_json: Sequence[JsonObject], names: Iterable[str]) -> tuple[list[JsonObject], Changes]:
    """Tool definitions in OpenAI's shape, on their way out."""
    return TOOL.apply(list(tools_json), names)


def apply_request(body: JsonObject, names: Iterable[str]) -> tuple[JsonObject, Changes]:
    """A whole body in chat shape, on its way out."""
    return REQUEST.apply(body, names)


def apply_response(
    message: Message, names: Iterable[str], facts: TransformContext = EMPTY_CONTEXT
) -> tuple[Message, Changes]:
    """The assistant message of an answer."""
    return RESPONSE.apply(message, names, facts)


def apply_calls(calls: Sequence[JsonObject], names: Iterable[str]) -> tuple[list[JsonObject], Changes]:
    """The calls of one answer in OpenAI's shape."""
    return TOOL_CALL.apply(list(calls), names)


def apply_result(
    envelope_json: JsonObject, names: Iterable[str], *, tool_name: str = "", call_id: str = ""
) -> tuple[JsonObject, Changes]:
    """The envelope of one tool result. Changes of several results may stand in one list, so their paths begin with
    whose they are: `$['call_1'].data`."""
    value, changes = TOOL_RESULT.apply(envelope_json, names)
    whose = call_id or tool_name
    root = f"$['{whose}']" if whose else "$"
    return value, tuple(replace(change, path=root + change.path[1:]) for change in changes)
