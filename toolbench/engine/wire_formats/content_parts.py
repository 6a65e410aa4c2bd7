"""Content as a list of parts, as Mistral's reasoning models send it: thinking and text."""

from collections.abc import Iterator, Sequence
from typing import Any

from toolbench.engine.strict_json import get_text
from toolbench.engine.types import JsonObject, Message
from toolbench.engine.wire_formats.parse_answer import get_message_text

PARTS_FIELD = "content_parts"  # where an answer's own parts stand in its message, to be sent back unchanged
_REASONING = "reasoning_content"
_TEXT, _THINKING = "text", "thinking"


def get_thinking_text(content: Any) -> str:
    """Return the text of the thinking parts of a content."""
    parts = content if isinstance(content, list) else []
    return "".join(_get_thought(part) for part in parts if isinstance(part, dict) and part.get("type") == _THINKING)


def split_content_parts(message: Message) -> Message:
    """Return the message with its text as content and its thinking as reasoning.

    A message whose content is not a list of thinking and text is returned itself.
    """
    content = message.get("content")
    if not _has_thinking(content):
        return message
    thought = get_text(message.get(_REASONING)) + get_thinking_text(content)
    return {
        **message,
        "content": get_message_text(message),
        **({_REASONING: thought} if thought else {}),
        PARTS_FIELD: content,
    }


def restore_content_parts(message: Message) -> Message:
    """Return the message as its endpoint wrote it, from what `split_content_parts` returns.

    If a transform changed the text, the changed text is sent; thinking that was removed stays removed.
    """
    parts = message.get(PARTS_FIELD)
    if not isinstance(parts, list) or not all(_is_part(part, _THINKING) or _is_part(part, _TEXT) for part in parts):
        return message
    text = get_message_text(message)
    thoughts = [part for part in parts if _is_part(part, _THINKING)]
    same = text == "".join(get_text(part.get(_TEXT)) for part in parts)
    rest = {key: value for key, value in message.items() if key not in (PARTS_FIELD, _REASONING)}
    text_parts = [{"type": _TEXT, _TEXT: text}] if text else []
    return {**rest, "content": parts if same else [*thoughts, *text_parts]} if thoughts else rest


def join_content(pieces: Sequence[Any]) -> Any:
    """Return the content of parts of a stream: a list if some are thinking, otherwise text."""
    if not any(_has_thinking(piece) for piece in pieces):
        return "".join(map(_get_text, pieces))
    parts: list[JsonObject] = []
    for part in (part for piece in pieces for part in _list_parts(piece)):
        if parts and parts[-1].get("type") == part.get("type") == _TEXT:
            parts[-1] = {**parts[-1], _TEXT: get_text(parts[-1].get(_TEXT)) + get_text(part.get(_TEXT))}
        elif parts and parts[-1].get("type") == part.get("type") == _THINKING:
            thought = {"type": _TEXT, _TEXT: _get_thought(parts[-1]) + _get_thought(part)}
            parts[-1] = {**parts[-1], **part, _THINKING: [thought]}
        else:
            parts.append(part)
    return parts


def _list_parts(piece: Any) -> Iterator[JsonObject]:
    if isinstance(piece, str):
        yield from [{"type": _TEXT, _TEXT: piece}] if piece else []
    elif isinstance(piece, list):
        yield from (part for part in piece if isinstance(part, dict))


def _get_text(piece: Any) -> str:
    return get_message_text({"content": piece})


def _has_thinking(content: Any) -> bool:
    parts = content if isinstance(content, list) else []
    return any(_is_part(part, _THINKING) for part in parts) and all(
        _is_part(part, _THINKING) or _is_part(part, _TEXT) for part in parts
    )


def _is_part(part: Any, kind: str) -> bool:
    return isinstance(part, dict) and part.get("type") == kind


def _get_thought(part: JsonObject) -> str:
    """Return the text of a thinking part, which is a list of texts at Mistral and a text elsewhere."""
    thought = part.get(_THINKING)
    return get_text(thought) or _get_text(thought)
