"""Conversion of a Responses answer to chat format.

The message keeps all items, also reasoning and items of unknown types, so that they can be sent back unchanged.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.strict_json import get_object, get_text
from toolbench.engine.types import Finding, JsonObject, Message, Usage
from toolbench.engine.wire_formats.chat_answer import CHAT_COMPLETION_HINT, ChatAnswer, get_error_text, read_object
from toolbench.engine.wire_formats.responses.items import KEPT_ITEMS_FIELD, list_message_texts, list_objects
from toolbench.engine.wire_formats.usage import UsageReader

# Finish reason of a chat answer by the reason why a Responses answer is incomplete.
INCOMPLETE_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}
KNOWN_ITEMS = ("message", "function_call", "reasoning")
_REASONING_SEPARATOR = "\n\n"  # between the texts of all reasoning items


def decode_response(body: bytes) -> ChatAnswer:
    """Decode the body of an answer.

    Raises:
        MalformedAnswerError: the bytes are not an answer; no other exception is raised.
    """
    return parse_responses_answer(read_object(body))


def parse_responses_answer(
    root: JsonObject, *, is_truncated: bool = False, findings: Sequence[Finding] = ()
) -> ChatAnswer:
    """Return the answer in a Response object.

    An unknown reason for an incomplete answer becomes the finish reason unchanged.

    Args:
        root: the JSON object of the body, or one assembled from a stream.
        is_truncated: whether the stream was truncated.
        findings: findings on the stream, which come first.

    Raises:
        MalformedAnswerError: the object is not an answer.
    """
    if error := root.get("error"):
        raise MalformedAnswerError("error_object", f"the answer contains an error: {get_error_text(error)}")
    if root.get("status") == "failed":
        raise MalformedAnswerError("error_object", "the answer has the status failed and names no error")
    items = root.get("output")
    if not isinstance(items, list):
        raise MalformedAnswerError("no_message", f"the answer has no output items{_get_wire_hint(root)}")
    message = build_chat_message(items)
    usage, usage_findings = read_responses_usage(root.get("usage"))
    return ChatAnswer(
        message=message,
        finish_reason=_get_finish_reason(root, message),
        usage=usage,
        model_echoed=get_text(root.get("model")),
        findings=(*findings, *_list_findings(items), *usage_findings),
        is_truncated=is_truncated,
    )


def _get_wire_hint(root: JsonObject) -> str:
    if "choices" in root:
        return CHAT_COMPLETION_HINT
    return (
        ": it looks like an answer of Messages, so choose the API Anthropic Messages for the provider"
        if "content" in root
        else ""
    )


def _get_finish_reason(root: JsonObject, message: Message) -> str | None:
    """Return the finish reason in OpenAI's chat terms; None if the answer has no status.

    An unknown status, or an unknown reason for an incomplete answer, is returned unchanged.
    """
    status = get_text(root.get("status"))
    if status == "incomplete":
        reason = get_text(get_object(root.get("incomplete_details")).get("reason"))
        return INCOMPLETE_REASONS.get(reason, reason) or status
    if status != "completed":
        return status or None
    if message.get("tool_calls"):
        return "tool_calls"
    return "content_filter" if message.get("refusal") and not message["content"] else "stop"


def _list_findings(items: list[Any]) -> Iterator[Finding]:
    for index, item in enumerate(items):
        if not isinstance(item, dict) or item.get("type") not in KNOWN_ITEMS:
            message = "The answer has an item of an unknown type; the item was not read and is sent back unchanged."
            yield Finding("item_not_read", message, f"$.output[{index}]")


def build_chat_message(items: list[Any]) -> Message:
    """Return the message in chat format, with the received items."""
    item_objects = list_objects(items)
    calls = [_to_chat_call(item) for item in item_objects if item.get("type") == "function_call"]
    reasoning = _REASONING_SEPARATOR.join(_list_reasoning_texts(item_objects))
    refusal = "".join(list_message_texts(item_objects, "refusal"))
    return {
        "role": "assistant",
        "content": "".join(list_message_texts(item_objects, "text")),
        **({"refusal": refusal} if refusal else {}),
        **({"reasoning_content": reasoning} if reasoning else {}),
        **({"tool_calls": calls} if calls else {}),
        **({KEPT_ITEMS_FIELD: items} if items else {}),
    }


def _list_reasoning_texts(item_objects: Sequence[JsonObject]) -> Iterator[str]:
    """Yield the texts of each reasoning item: those of its content, or those of its summary if the content has none."""
    for item in (item for item in item_objects if item.get("type") == "reasoning"):
        for name in ("content", "summary"):
            if texts := [text for part in list_objects(item.get(name)) if (text := get_text(part.get("text")))]:
                yield from texts
                break


def _to_chat_call(item: JsonObject) -> JsonObject:
    """Return a function_call item as a call in chat format; a missing id, name or arguments are None."""
    return {
        "id": item.get("call_id"),
        "type": "function",
        "function": {"name": item.get("name"), "arguments": item.get("arguments")},
    }


def read_responses_usage(reported_usage: Any) -> tuple[Usage | None, tuple[Finding, ...]]:
    """Return the usage (None if the answer has none) and findings for implausible figures."""
    reader = UsageReader(reported_usage)
    usage = Usage(
        input_tokens=reader.read_tokens("input_tokens"),
        output_tokens=reader.read_tokens("output_tokens"),
        cached_tokens=reader.read_tokens("input_tokens_details.cached_tokens"),
        reasoning_tokens=reader.read_tokens("output_tokens_details.reasoning_tokens"),
        cost=reader.read_cost("cost"),
    )
    return usage if reader.has_usage else None, tuple(reader.findings)
