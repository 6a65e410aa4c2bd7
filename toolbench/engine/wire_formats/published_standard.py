"""Calls that the published standards allow.

The standards are OpenAI's chat completions and Responses, and Anthropic's Messages. `engine.arguments` checks whether a
call's arguments follow the standards.
"""

from collections.abc import Iterator

from toolbench.engine.types import Finding, JsonObject, Message
from toolbench.engine.wire_formats.anthropic.blocks import KEPT_BLOCKS_FIELD

_MESSAGE_PATH = "$.choices[0].message"


def keep_standard_calls(message: Message, received: Message) -> tuple[Message, tuple[Finding, ...]]:
    """Return the message without the calls that no standard allows, and a `parse_error` finding for each.

    A call in the older `function_call` stays in the message, but gets a finding unless there are other calls.

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
        _build_parse_error(violation, f"{_MESSAGE_PATH}.tool_calls[{index}]")
        for index, violation in enumerate(violations)
        if violation
    ]
    if not any(violations):
        return message, tuple(findings)
    return {
        **message,
        "tool_calls": [call for call, violation in zip(calls, violations, strict=True) if not violation],
    }, tuple(findings)


def _list_misplaced_calls(message: Message) -> Iterator[Finding]:
    """Yield a finding for `tool_calls` that is no list, and for a call in `function_call` without other calls."""
    calls = message.get("tool_calls")
    if calls and not isinstance(calls, list):
        yield _build_parse_error("tool_calls is no list", f"{_MESSAGE_PATH}.tool_calls")
    if message.get("function_call") and not (isinstance(calls, list) and calls):
        yield _build_parse_error("the call stands in the older function_call", f"{_MESSAGE_PATH}.function_call")


def _match_received_calls(received: Message, call_count: int) -> Iterator[tuple[JsonObject | None, JsonObject | None]]:
    """Yield each received call with its block of Messages, in the order of the calls.

    If the number of calls changed, for example because a transform added one, the calls cannot be matched, and both are
    None. The block is also None for an answer without blocks of Messages.

    Args:
        received: the answer before the transforms.
        call_count: the number of calls after the transforms.
    """
    calls = received.get("tool_calls")
    received_calls = calls if isinstance(calls, list) and len(calls) == call_count else [None] * call_count
    kept_blocks = received.get(KEPT_BLOCKS_FIELD)
    blocks = (
        [block for block in kept_blocks if isinstance(block, dict) and block.get("type") == "tool_use"]
        if isinstance(kept_blocks, list)
        else []
    )
    for index, call in enumerate(received_calls):
        yield call if isinstance(call, dict) else None, blocks[index] if len(blocks) == call_count else None


def _find_violation(call: object, received_call: JsonObject | None, block: JsonObject | None) -> str:
    """Return how a call violates the standards, as a clause; "" if it does not.

    A missing type is allowed, as in Mistral's API.

    Args:
        call: the call after the transforms.
        received_call: the call as received; None if it cannot be matched.
        block: the block of the call in Messages; None for other wire formats or if it cannot be matched.
    """
    if not isinstance(call, dict):
        return "a call is no object"
    function = call.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    if call.get("type") not in (None, "function") or not isinstance(function, dict):
        return "a call is not of type function, or has no function object"
    if not isinstance(name, str) or not name or name != name.strip():
        return "a call has no name, or one with blanks around it"
    if received_call is not None and not (isinstance(received_call.get("id"), str) and received_call["id"].strip()):
        return "a call has no id"
    if block is not None and not isinstance(block.get("input"), dict):
        return "the input of a call is no object"
    return ""


def _build_parse_error(violation: str, path: str) -> Finding:
    return Finding("parse_error", f"No published standard allows this: {violation}; the call was not executed.", path)
