"""Content that is a list of thinking and text parts, as Mistral's reasoning models send it."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from toolbench.engine.strict_json import get_text
from toolbench.engine.types import JsonObject, Message
from toolbench.engine.wire_formats.parse_answer import get_message_text

PARTS_FIELD = "content_parts"  # field of a message with the received parts, to be sent back unchanged
_REASONING_FIELD = "reasoning_content"
_TEXT, _THINKING = "text", "thinking"


def get_thinking_text(content: Any) -> str:
    """Return the text of the thinking parts of a content; "" for a content that is no list."""
    parts = content if isinstance(content, list) else []
    return "".join(_get_thinking(part) for part in parts if isinstance(part, dict) and part.get("type") == _THINKING)


def split_content_parts(message: Message) -> Message:
    """Return the message with its text as content and the received parts in PARTS_FIELD.

    The thinking is appended to `reasoning_content`. A message without thinking parts, or with other parts than thinking
    and text, is returned unchanged.
    """
    content = message.get("content")
    if not _has_thinking(content):
        return message
    reasoning = get_text(message.get(_REASONING_FIELD)) + get_thinking_text(content)
    return {
        **message,
        "content": get_message_text(message),
        **({_REASONING_FIELD: reasoning} if reasoning else {}),
        PARTS_FIELD: content,
    }


def restore_content_parts(message: Message) -> Message:
    """Return the message with its received parts as content; the inverse of `split_content_parts`.

    A message without received parts is returned unchanged. If a transform changed the text, the content is a list of
    the thinking parts and one part with the changed text. If a transform removed all thinking parts, the content stays
    text.
    """
    parts = message.get(PARTS_FIELD)
    if not isinstance(parts, list) or not all(_is_part(part, _THINKING) or _is_part(part, _TEXT) for part in parts):
        return message
    text = get_message_text(message)
    thinking_parts = [part for part in parts if _is_part(part, _THINKING)]
    is_text_unchanged = text == "".join(get_text(part.get(_TEXT)) for part in parts)
    other_fields = {key: value for key, value in message.items() if key not in (PARTS_FIELD, _REASONING_FIELD)}
    text_parts = [{"type": _TEXT, _TEXT: text}] if text else []
    return (
        {**other_fields, "content": parts if is_text_unchanged else [*thinking_parts, *text_parts]}
        if thinking_parts
        else other_fields
    )


def join_content(chunks: Sequence[Any]) -> Any:
    """Return the content of the chunks of a stream: a list of parts if any chunk has thinking, else text.

    Successive parts of the same type are joined.
    """
    if not any(_has_thinking(chunk) for chunk in chunks):
        return "".join(map(_get_text, chunks))
    parts = (part for chunk in chunks for part in _list_parts(chunk))
    groups = (list(group) for _, group in groupby(parts, key=lambda part: part.get("type")))
    return [part for group in groups for part in _join_parts(group)]


def _join_parts(parts: list[JsonObject]) -> list[JsonObject]:
    """Return successive parts of one type as one part if they are texts or thinking, else unchanged."""
    part_type = parts[0].get("type")
    if len(parts) < 2 or part_type not in (_TEXT, _THINKING):
        return parts
    if part_type == _TEXT:
        return [{**parts[0], _TEXT: "".join(get_text(part.get(_TEXT)) for part in parts)}]
    fields = {name: value for part in parts for name, value in part.items()}
    return [{**fields, _THINKING: [{"type": _TEXT, _TEXT: "".join(map(_get_thinking, parts))}]}]


def _list_parts(chunk: Any) -> Iterator[JsonObject]:
    """Yield the parts of a chunk; a text is one part, unless it is empty."""
    if isinstance(chunk, str):
        yield from [{"type": _TEXT, _TEXT: chunk}] if chunk else []
    elif isinstance(chunk, list):
        yield from (part for part in chunk if isinstance(part, dict))


def _get_text(content: Any) -> str:
    return get_message_text({"content": content})


def _has_thinking(content: Any) -> bool:
    """Return whether a content is a list of thinking and text parts only, with thinking among them."""
    parts = content if isinstance(content, list) else []
    return any(_is_part(part, _THINKING) for part in parts) and all(
        _is_part(part, _THINKING) or _is_part(part, _TEXT) for part in parts
    )


def _is_part(part: Any, part_type: str) -> bool:
    return isinstance(part, dict) and part.get("type") == part_type


def _get_thinking(part: JsonObject) -> str:
    """Return the text of a thinking part, which contains a list of text parts at Mistral and a text elsewhere."""
    thinking = part.get(_THINKING)
    return get_text(thinking) or _get_text(thinking)
