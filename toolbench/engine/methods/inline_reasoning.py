"""Reasoning inside an answer's text, separated from the answer and its calls."""

import re

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats import REASONING_FORMAT, split_reasoning
from toolbench.engine.repairs.tokens import find_objects
from toolbench.engine.strict_json import read_json
from toolbench.engine.types import Message
from toolbench.engine.wire_formats.parse_answer import add_reasoning, get_message_text

_START_TAGS = tuple(start_tag for start_tag, _ in REASONING_FORMAT.reasoning_markers)
_TAGS = (*_START_TAGS, *(end_tag for _, end_tag in REASONING_FORMAT.reasoning_markers))
_PRIVATE_USE_CODES = range(0xE000, 0xF900)  # code points without a meaning in Unicode


def split_message_reasoning(message: Message) -> tuple[str, Message | None]:
    """Return the text of a message without its closed reasoning, so that no call is read from reasoning.

    Returns:
        The text, and a copy of the message with this text and the reasoning in `reasoning_content`. The copy is None if
        the text has no closed reasoning, or only an empty one.
    """
    text, reasoning = split_text_reasoning(get_message_text(message))
    return text, {**add_reasoning(message, reasoning), "content": text} if reasoning else None


def split_text_reasoning(text: str) -> tuple[str, str]:
    """Return the text without the reasoning between the tags of any text format, and the reasoning.

    Tags inside a JSON object are part of a value. Reasoning that is not closed stays in the text, since it may
    contain calls. So does a single JSON object before an end tag without a start tag, since it may be a call.
    """
    if not any(tag in text for tag in _TAGS):
        return text, ""
    masked_json = _MaskedJson(text)
    visible_text, reasoning = split_reasoning(masked_json.text)
    if masked_json.is_single_object(reasoning) and not any(start_tag in masked_json.text for start_tag in _START_TAGS):
        return masked_json.unmask(reasoning + visible_text), ""  # a single call, not reasoning
    return masked_json.unmask(visible_text), masked_json.unmask(reasoning)


def remove_partial_reasoning(text: str) -> str:
    """Return the text of a streaming answer, as received so far, without its reasoning.

    Open reasoning is removed too, since it may be closed later.
    """
    if not any(tag in text for tag in _TAGS):
        return text
    masked_json = _MaskedJson(text)
    visible_text, _ = split_reasoning(masked_json.text)
    start_offsets = [offset for start_tag in _START_TAGS if (offset := visible_text.find(start_tag)) >= 0]
    return masked_json.unmask(visible_text[: min(start_offsets, default=len(visible_text))])


class _MaskedJson:
    """A text whose JSON objects are replaced by masks, so that tags inside of them are not read as tags.

    A mask is the index of the object between two copies of a character that does not occur in the text. If there is
    no such character, nothing is masked.

    Attributes:
        text: the text with masks.
    """

    def __init__(self, text: str) -> None:
        self._mask_character = next((chr(code) for code in _PRIVATE_USE_CODES if chr(code) not in text), "")
        self._masked_objects = (
            [json_text for json_text in find_objects(text)[0] if _is_json(json_text)] if self._mask_character else []
        )
        text_parts, end = [], 0
        for index, json_text in enumerate(self._masked_objects):
            start = text.index(json_text, end)
            text_parts += [text[end:start], f"{self._mask_character}{index}{self._mask_character}"]
            end = start + len(json_text)
        self.text = "".join([*text_parts, text[end:]])

    def is_single_object(self, text: str) -> bool:
        """Return whether a masked text is one JSON object, with or without a fence."""
        return (
            bool(self._masked_objects)
            and re.fullmatch(rf"\s*(?:```\w*)?\s*{self._mask_character}\d+{self._mask_character}\s*(?:```)?\s*", text)
            is not None
        )

    def unmask(self, text: str) -> str:
        """Return a masked text with its JSON objects restored."""
        if not self._masked_objects:
            return text
        return re.sub(
            f"{self._mask_character}([0-9]+){self._mask_character}",
            lambda match: self._masked_objects[int(match[1])],
            text,
        )


def _is_json(text: str) -> bool:
    try:
        read_json(text)
    except InvalidJsonError:
        return False
    return True
