"""Reasoning inside an answer's text, separated from the answer and its calls."""

import re
from collections import deque
from dataclasses import dataclass, field

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats import REASONING_FORMAT, split_open_reasoning, split_reasoning
from toolbench.engine.strict_json import MAX_DEPTH, read_json
from toolbench.engine.types import Message
from toolbench.engine.wire_formats.parse_answer import add_reasoning, get_message_text

_START_TAGS = tuple(start_tag for start_tag, _ in REASONING_FORMAT.reasoning_markers)
_TAGS = (*_START_TAGS, *(end_tag for _, end_tag in REASONING_FORMAT.reasoning_markers))
_PRIVATE_USE_CODES = range(0xE000, 0xF900)  # code points without a meaning in Unicode
_OPENING_BRACE = re.compile(r"\{")
# Inside braces: a string, an escape, a brace, a bracket, or the quote of a string that does not end on its line.
_TOKEN_IN_BRACES = re.compile(r'"(?:[^"\\\n]++|\\.)*+"|\\.|["{}\[\]]')


def split_message_reasoning(message: Message) -> tuple[str, Message | None]:
    """Return the text of a message without its closed reasoning, so that no call is read from reasoning.

    Returns:
        The text, as `split_text_reasoning` returns it, and a copy of the message with this text and the reasoning in
        `reasoning_content`. The copy is None if no reasoning was removed, or only empty reasoning; the text may then
        still be shorter than that of the message.
    """
    text, reasoning = split_text_reasoning(get_message_text(message))
    return text, {**add_reasoning(message, reasoning), "content": text} if reasoning else None


def split_text_reasoning(text: str) -> tuple[str, str]:
    """Return the text without its closed reasoning, and this reasoning.

    Reasoning stands between the tags of any text format. Tags inside a JSON object are part of a value. Other tags
    count as in `split_reasoning`: a start tag that directly follows a word on its line is text, as is the end tag after
    it. Reasoning without an end tag stays in the text, since it may contain calls. So does a single JSON object before
    an end tag without a start tag, since it may be a call.
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

    Tags count as in `split_text_reasoning`. Reasoning without an end tag is removed too: the tag may follow later.
    """
    if not any(tag in text for tag in _TAGS):
        return text
    masked_json = _MaskedJson(text)
    closed_text, _ = split_open_reasoning(masked_json.text)
    visible_text, _ = split_reasoning(closed_text)
    return masked_json.unmask(visible_text)


class _MaskedJson:
    """A text whose JSON objects are replaced by masks, so that tags inside of them are not read as tags.

    A mask is the index of the object between two copies of a character that does not occur in the text. If there is
    no such character, nothing is masked.

    Attributes:
        text: the text with masks.
    """

    def __init__(self, text: str) -> None:
        used_characters = set(text) if chr(_PRIVATE_USE_CODES[0]) in text else set()
        self._mask_character = next((chr(code) for code in _PRIVATE_USE_CODES if chr(code) not in used_characters), "")
        self._masked_objects: list[str] = []
        text_parts, last_end = [], 0
        for start, end in _find_objects(text) if self._mask_character else ():
            text_parts += [
                text[last_end:start],
                f"{self._mask_character}{len(self._masked_objects)}{self._mask_character}",
            ]
            self._masked_objects.append(text[start:end])
            last_end = end
        self.text = "".join([*text_parts, text[last_end:]])

    def is_single_object(self, text: str) -> bool:
        """Return whether a masked text is one JSON object, with or without a code fence."""
        mask = f"{self._mask_character}[0-9]+{self._mask_character}"
        pattern = rf"\s*+(?:```\w*+)?\s*+{mask}\s*+(?:```)?\s*+"
        return bool(self._masked_objects) and re.fullmatch(pattern, text) is not None

    def unmask(self, text: str) -> str:
        """Return a masked text with its JSON objects restored."""
        if not self._masked_objects:
            return text
        return re.sub(
            f"{self._mask_character}([0-9]+){self._mask_character}",
            lambda match: self._masked_objects[int(match[1])],
            text,
        )


def _find_objects(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each outermost JSON object of at most MAX_DEPTH levels.

    The time is proportional to the length of the text: an object is parsed without the objects inside of it. Single
    quotes are plain text. A double quote after an opening brace begins a string.
    """
    finder = _ObjectFinder(text)
    index = 0
    while token := (_TOKEN_IN_BRACES if finder.is_in_braces else _OPENING_BRACE).search(text, index):
        index = token.end()
        if token[0] == "{":
            finder.open_brace(token.start())
        elif token[0] == "}":
            finder.close_brace(index)
        elif token[0] in "[]":
            finder.count_array(1 if token[0] == "[" else -1)
        elif token[0] == '"':
            finder.drop_braces()
    return finder.objects


class _ObjectFinder:
    """Finder of the JSON objects in a text; its methods are called for each brace and bracket in order.

    Attributes:
        objects: start and end of each outermost object that was found.
    """

    def __init__(self, text: str) -> None:
        self.objects: list[tuple[int, int]] = []
        self._text = text
        # The innermost open braces. Braces further out have too many levels, so only their number is kept.
        self._open_braces: deque[_OpenBrace] = deque(maxlen=MAX_DEPTH)
        self._dropped_count = 0

    @property
    def is_in_braces(self) -> bool:
        """Whether a brace is open."""
        return bool(self._open_braces) or self._dropped_count > 0

    def open_brace(self, start: int) -> None:
        """Add an opening brace at this position."""
        self._dropped_count += len(self._open_braces) == MAX_DEPTH
        self._open_braces.append(_OpenBrace(start, start))

    def count_array(self, change: int) -> None:
        """Change the number of open arrays in the innermost brace by 1 or -1."""
        if self._open_braces:
            brace = self._open_braces[-1]
            brace.open_arrays += change
            brace.levels = max(brace.levels, 1 + brace.open_arrays)

    def close_brace(self, end: int) -> None:
        """Close the innermost brace at the position `end`, and check whether its text is a JSON object."""
        if not self._open_braces:
            self._dropped_count -= 1
            return
        brace = self._open_braces.pop()
        is_object = brace.is_valid and brace.levels <= MAX_DEPTH
        is_object = is_object and _is_json("".join([*brace.parts, self._text[brace.copied_end : end]]))
        if is_object:
            while self.objects and self.objects[-1][0] > brace.start:
                self.objects.pop()
            self.objects.append((brace.start, end))
        if self._open_braces:
            outer = self._open_braces[-1]
            outer.levels = max(outer.levels, 1 + outer.open_arrays + brace.levels)
            outer.is_valid = outer.is_valid and is_object
            outer.parts += (self._text[outer.copied_end : brace.start], "{}")
            outer.copied_end = end

    def drop_braces(self) -> None:
        """Forget the open braces: they contain a string that does not end on its line, which is not JSON."""
        self._open_braces.clear()
        self._dropped_count = 0


@dataclass(slots=True)
class _OpenBrace:
    """Opening brace whose closing brace was not read yet.

    Attributes:
        start: position of the brace in the text.
        copied_end: position up to which `parts` has the text.
        levels: levels of objects and arrays so far, including that of the brace.
        open_arrays: number of arrays that are open directly inside the brace.
        parts: the text so far, with `{}` in place of each pair of braces inside.
        is_valid: whether each pair of braces inside so far is a JSON object.
    """

    start: int
    copied_end: int
    levels: int = 1
    open_arrays: int = 0
    parts: list[str] = field(default_factory=list)
    is_valid: bool = True


def _is_json(text: str) -> bool:
    try:
        read_json(text)
    except InvalidJsonError:
        return False
    return True
