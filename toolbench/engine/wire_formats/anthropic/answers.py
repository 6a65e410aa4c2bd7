"""Conversion of a Messages answer to chat format.

The message keeps its blocks, so that they can be sent back unchanged.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.strict_json import get_text, write_json
from toolbench.engine.types import Finding, JsonObject, Message, Usage
from toolbench.engine.wire_formats.anthropic.blocks import KEPT_BLOCKS_FIELD
from toolbench.engine.wire_formats.chat_answer import CHAT_COMPLETION_HINT, ChatAnswer, get_error_text, read_object
from toolbench.engine.wire_formats.usage import UsageReader

# Finish reason of a chat answer by the stop reason of a Messages answer.
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
PAUSED_STOP_REASON = "pause_turn"
_CACHE_TOKEN_FIELDS = ("cache_read_input_tokens", "cache_creation_input_tokens")
# Fields that are converted or left out; all others are kept in the message as received, unless they are null.
_READ_FIELDS = ("id", "type", "role", "model", "content", "stop_reason", "usage")


def decode_message(body: bytes) -> ChatAnswer:
    """Decode the body of an answer.

    Raises:
        MalformedAnswerError: the bytes are not an answer; no other exception is raised.
    """
    return parse_messages_answer(read_object(body))


def parse_messages_answer(
    root: JsonObject, *, is_truncated: bool = False, findings: Sequence[Finding] = ()
) -> ChatAnswer:
    """Return the answer in a Messages object.

    An unknown stop reason becomes the finish reason unchanged.

    Args:
        root: the JSON object of the body, or one assembled from a stream.
        is_truncated: whether the stream was truncated.
        findings: findings on the stream, which come first.

    Raises:
        MalformedAnswerError: the object is not an answer.
    """
    if error := root.get("error"):
        raise MalformedAnswerError("error_object", f"the answer contains an error: {get_error_text(error)}")
    blocks = root.get("content")
    if not isinstance(blocks, list):
        hint = CHAT_COMPLETION_HINT if "choices" in root else ""
        raise MalformedAnswerError("no_message", f"the answer has no content blocks{hint}")
    stop_reason = root.get("stop_reason")
    stop_reason = stop_reason if isinstance(stop_reason, str) else None
    usage, usage_findings = read_messages_usage(root.get("usage"))
    return ChatAnswer(
        message=build_chat_message(root, blocks),
        finish_reason=FINISH_REASONS.get(stop_reason, stop_reason) if stop_reason else None,
        usage=usage,
        model_echoed=root["model"] if isinstance(root.get("model"), str) else "",
        findings=(*findings, *_list_findings(blocks, stop_reason), *usage_findings),
        is_truncated=is_truncated,
        is_paused=stop_reason == PAUSED_STOP_REASON,
    )


def _list_findings(blocks: list[Any], stop_reason: str | None) -> Iterator[Finding]:
    """Yield a finding for each call whose input is text, and one for a paused turn."""
    for index, block in enumerate(blocks):
        if isinstance(block, dict) and block.get("type") == "tool_use" and isinstance(block.get("input"), str):
            message = "A call's input is a text instead of an object; the text was read as the arguments."
            yield Finding("input_is_text", message, f"$.content[{index}].input")
    if stop_reason == PAUSED_STOP_REASON:
        yield Finding("turn_paused", "The endpoint paused a long turn; the next request continues it.", "$.stop_reason")


def build_chat_message(root: JsonObject, blocks: list[Any]) -> Message:
    """Return the message in chat format, with the received blocks and the fields outside of _READ_FIELDS.

    Args:
        root: the Messages object, or the part of it that was received so far.
        blocks: its content blocks.
    """
    block_objects = [block for block in blocks if isinstance(block, dict)]
    thinking_texts = [
        thinking_text for block in block_objects if isinstance(thinking_text := block.get("thinking"), str)
    ]
    is_cut_off = FINISH_REASONS.get(get_text(root.get("stop_reason"))) == "length"
    calls = [
        _to_chat_call(block, is_cut_off=is_cut_off and block is block_objects[-1])
        for block in block_objects
        if block.get("type") == "tool_use"
    ]
    other_fields = {name: value for name, value in root.items() if name not in _READ_FIELDS and value is not None}
    return {
        "role": "assistant",
        "content": "".join(text for block in block_objects if isinstance(text := block.get("text"), str)),
        **({"reasoning_content": "".join(thinking_texts)} if thinking_texts else {}),
        **({"tool_calls": calls} if calls else {}),
        **({KEPT_BLOCKS_FIELD: blocks} if blocks else {}),
        **other_fields,
    }


def _to_chat_call(block: JsonObject, *, is_cut_off: bool) -> JsonObject:
    """Return a tool_use block as a call in chat format.

    An input that is an object becomes JSON text, a missing one the text `{}`; any other input is unchanged. If the
    token limit truncated the answer in this block, an empty input becomes "", since the model did not begin to write
    it.
    """
    call_input = block.get("input")
    call_input = {} if call_input is None else call_input
    arguments = write_json(call_input) if isinstance(call_input, dict) else call_input
    if is_cut_off and not call_input:
        arguments = ""
    return {
        "id": block.get("id"),
        "type": "function",
        "function": {"name": block.get("name"), "arguments": arguments},
    }


def read_messages_usage(reported_usage: Any) -> tuple[Usage | None, tuple[Finding, ...]]:
    """Return the usage (None if the answer has none) and findings for implausible figures.

    As in chat format, the input tokens include those read from and written to the cache.
    """
    reader = UsageReader(reported_usage)
    usage = Usage(
        input_tokens=reader.sum_tokens("input_tokens", *_CACHE_TOKEN_FIELDS),
        output_tokens=reader.read_tokens("output_tokens"),
        cached_tokens=reader.read_tokens(_CACHE_TOKEN_FIELDS[0]),
        reasoning_tokens=reader.read_tokens("output_tokens_details.thinking_tokens"),
    )
    return usage if reader.has_usage else None, tuple(dict.fromkeys(reader.findings))
