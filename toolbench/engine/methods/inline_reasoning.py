"""Reasoning inside an answer's text, separated from the answer and its calls."""

import re

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats import REASONING_FORMAT, split_reasoning
from toolbench.engine.repairs.tokens import find_objects
from toolbench.engine.strict_json import get_text, read_json
from toolbench.engine.types import Message
from toolbench.engine.wire_formats.parse_answer import get_message_text

_REASONING_FIELD = "reasoning_content"
_START_TAGS = tuple(opener for opener, _ in REASONING_FORMAT.reasoning)
_TAGS = (*_START_TAGS, *(closer for _, closer in REASONING_FORMAT.reasoning))
_PRIVATE_USE_CODES = range(0xE000, 0xF900)  # characters that mean nothing


def split_message_reasoning(message: Message) -> tuple[str, Message | None]:
    """Return the text without closed reasoning, in which nothing is called.

    Returns:
        The text, and the message with the reasoning in its own field; None instead of the message without reasoning.
    """
    text, thought = split_text_reasoning(get_message_text(message))
    if not thought:
        return text, None
    together = "\n".join(filter(None, (get_text(message.get(_REASONING_FIELD)), thought)))
    return text, {**message, "content": text, _REASONING_FIELD: together}


def split_text_reasoning(text: str) -> tuple[str, str]:
    """Return the text without the reasoning in it, in the tags of any format, and the reasoning.

    Tags inside a JSON object are part of a value. Reasoning that is not closed stays, since calls in it may be meant.
    """
    if not any(tag in text for tag in _TAGS):
        return text, ""
    veil = _MaskedJson(text)
    visible, thought = split_reasoning(veil.text)
    if veil.is_value(thought) and not any(opener in veil.text for opener in _START_TAGS):
        return veil.lifted(thought + visible), ""  # nobody thinks in nothing but a call
    return veil.lifted(visible), veil.lifted(thought)


def split_partial_reasoning(text: str) -> str:
    """Return the text so far of a streamed answer without its reasoning.

    Open reasoning is removed too, since it may be closed later.
    """
    if not any(tag in text for tag in _TAGS):
        return text
    veil = _MaskedJson(text)
    visible, _ = split_reasoning(veil.text)
    opened = [at for opener in _START_TAGS if (at := visible.find(opener)) >= 0]
    return veil.lifted(visible[: min(opened, default=len(visible))])


class _MaskedJson:
    """A text with its JSON objects replaced by characters that do not occur in it."""

    def __init__(self, text: str) -> None:
        self._sign = next((chr(code) for code in _PRIVATE_USE_CODES if chr(code) not in text), "")
        self._hidden = [json_text for json_text in find_objects(text)[0] if _is_json(json_text)] if self._sign else []
        parts, at = [], 0
        for place, json_text in enumerate(self._hidden):
            start = text.index(json_text, at)
            parts += [text[at:start], f"{self._sign}{place}{self._sign}"]
            at = start + len(json_text)
        self.text = "".join([*parts, text[at:]])

    def is_value(self, text: str) -> bool:
        """Return whether a text is one JSON object, with or without a fence."""
        return (
            bool(self._hidden)
            and re.fullmatch(rf"\s*(?:```\w*)?\s*{self._sign}\d+{self._sign}\s*(?:```)?\s*", text) is not None
        )

    def lifted(self, text: str) -> str:
        """Return a text with the JSON objects restored."""
        if not self._hidden:
            return text
        return re.sub(f"{self._sign}([0-9]+){self._sign}", lambda found: self._hidden[int(found[1])], text)


def _is_json(text: str) -> bool:
    try:
        read_json(text)
    except InvalidJsonError:
        return False
    return True
