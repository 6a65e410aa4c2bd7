"""Calls that the published standards allow: OpenAI's chat completions and Responses, and Anthropic's Messages.

`engine.arguments` checks whether a call's arguments follow the standards.
"""

from collections.abc import Iterator

from toolbench.engine.types import Finding, JsonObject, Message
from toolbench.engine.wire_formats.anthropic.blocks import KEPT_BLOCKS_FIELD

_MESSAGE_PATH = "$.choices[0].message"


def keep_standard_calls(message: Message, received: Message) -> tuple[Message, tuple[Finding, ...]]:
    """Return the message without the calls that no standard allows, and a parse error for each.

    Args:
        message: the answer after its transforms.
        received: the answer before the transforms, which shows the ids that the endpoint sent.
    """
    calls = message.get("tool_calls")
    findings = list(_list_misplaced_calls(message))
    if not isinstance(calls, list):
        return {**message, "tool_calls": []} if calls else message, tuple(findings)
    received_calls = [*_match_received_calls(received, len(calls))]
    violations = [
        _find_violation(call, received_call, block)
        for call, (received_call, block) in zip(calls, received_calls, strict=True)
    ]
    findings += [
        _build_parse_error(message, f"{_MESSAGE_PATH}.tool_calls[{index}]")
        for index, message in enumerate(violations)
        if message
    ]
    if not any(violations):
        return message, tuple(findings)
    return {
        **message,
        "tool_calls": [call for call, message in zip(calls, violations, strict=True) if not message],
    }, tuple(findings)


def _list_misplaced_calls(message: Message) -> Iterator[Finding]:
    """Yield a finding for calls in fields in which the standards have none."""
    calls = message.get("tool_calls")
    if calls and not isinstance(calls, list):
        yield _build_parse_error("tool_calls is no list", f"{_MESSAGE_PATH}.tool_calls")
    if message.get("function_call") and not (isinstance(calls, list) and calls):
        yield _build_parse_error("the call stands in the older function_call", f"{_MESSAGE_PATH}.function_call")


def _match_received_calls(received: Message, count: int) -> Iterator[tuple[JsonObject | None, JsonObject | None]]:
    """Yield each received call with its block of Messages, in the order of the calls.

    The call is None if a transform added it; the block is None also for other wire formats.
    """
    calls = received.get("tool_calls")
    received_calls = calls if isinstance(calls, list) and len(calls) == count else [None] * count
    kept_blocks = received.get(KEPT_BLOCKS_FIELD)
    blocks = (
        [block for block in kept_blocks if isinstance(block, dict) and block.get("type") == "tool_use"]
        if kept_blocks
        else []
    )
    for index, call in enumerate(received_calls):
        yield call if isinstance(call, dict) else None, blocks[index] if len(blocks) == count else None


def _find_violation(call: object, received_call: JsonObject | None, block: JsonObject | None) -> str:
    """Return how a call violates the standards; "" if it does not.

    A missing type is allowed, as in Mistral's standard.
    """
    if not isinstance(call, dict):
        return "a call is no object"
    function = call.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    if call.get("type") not in (None, "function") or not isinstance(function, dict):
        return "a call is no function"
    if not isinstance(name, str) or not name or name != name.strip():
        return "a call has no name, or one with blanks around it"
    if received_call is not None and not (isinstance(received_call.get("id"), str) and received_call["id"].strip()):
        return "a call has no id"
    if block is not None and not isinstance(block.get("input"), dict):
        return "the input of a call is no object"
    return ""


def _build_parse_error(message: str, path: str) -> Finding:
    return Finding("parse_error", f"No wire standard allows this: {message}; it was not executed.", path)
