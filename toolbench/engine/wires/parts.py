"""Content that comes as a list of parts, as Mistral's reasoning models send it: what they think and what they say."""

from collections.abc import Iterator, Sequence
from typing import Any

from toolbench.engine.json_text import string_in
from toolbench.engine.messages import JsonObject, Message
from toolbench.engine.wires.reading import text_of

PARTS = "content_parts"  # where an answer's own parts stand in its message, to be sent back unchanged
_REASONING = "reasoning_content"
_TEXT, _THINKING = "text", "thinking"


def thought_in(content: Any) -> str:
    """Return what the thinking parts of a content say."""
    parts = content if isinstance(content, list) else []
    return "".join(_thought(part) for part in parts if isinstance(part, dict) and part.get("type") == _THINKING)


def apart(message: Message) -> Message:
    """Return the message with its text as content and its thoughts as reasoning, where its content is a list of
    thinking and text and nothing else; else the message itself."""
    content = message.get("content")
    if not _thinks(content):
        return message
    thought = string_in(message.get(_REASONING)) + thought_in(content)
    return {
        **message,
        "content": text_of(message),
        **({_REASONING: thought} if thought else {}),
        PARTS: content,
    }


def own_parts(message: Message) -> Message:
    """Return the message as its endpoint wrote it, from what `apart` gives. Where a transform changed the text, the
    changed one is said; thoughts that were taken away stay away."""
    parts = message.get(PARTS)
    if not isinstance(parts, list) or not all(_is(part, _THINKING) or _is(part, _TEXT) for part in parts):
        return message
    text = text_of(message)
    thoughts = [part for part in parts if _is(part, _THINKING)]
    same = text == "".join(string_in(part.get(_TEXT)) for part in parts)
    rest = {key: value for key, value in message.items() if key not in (PARTS, _REASONING)}
    said = [{"type": _TEXT, _TEXT: text}] if text else []
    return {**rest, "content": parts if same else [*thoughts, *said]} if thoughts else rest


def joined(pieces: Sequence[Any]) -> Any:
    """Return the content that pieces of a stream make: a list of parts where some think, else a text."""
    if not any(_thinks(piece) for piece in pieces):
        return "".join(map(_said, pieces))
    parts: list[JsonObject] = []
    for part in (part for piece in pieces for part in _parts(piece)):
        if parts and parts[-1].get("type") == part.get("type") == _TEXT:
            parts[-1] = {**parts[-1], _TEXT: string_in(parts[-1].get(_TEXT)) + string_in(part.get(_TEXT))}
        elif parts and parts[-1].get("type") == part.get("type") == _THINKING:
            thought = {"type": _TEXT, _TEXT: _thought(parts[-1]) + _thought(part)}
            parts[-1] = {**parts[-1], **part, _THINKING: [thought]}
        else:
            parts.append(part)
    return parts


def _parts(piece: Any) -> Iterator[JsonObject]:
    if isinstance(piece, str):
        yield from [{"type": _TEXT, _TEXT: piece}] if piece else []
    elif isinstance(piece, list):
        yield from (part for part in piece if isinstance(part, dict))


def _said(piece: Any) -> str:
    return text_of({"content": piece})


def _thinks(content: Any) -> bool:
    parts = content if isinstance(content, list) else []
    return any(_is(part, _THINKING) for part in parts) and all(
        _is(part, _THINKING) or _is(part, _TEXT) for part in parts
    )


def _is(part: Any, kind: str) -> bool:
    return isinstance(part, dict) and part.get("type") == kind


def _thought(part: JsonObject) -> str:
    """Mistral has a list of texts in a thinking part, others one text."""
    thought = part.get(_THINKING)
    return string_in(thought) or _said(thought)
