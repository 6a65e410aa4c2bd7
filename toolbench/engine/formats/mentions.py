"""Detection of markers that a text only mentions, by the text around them."""

import re
from collections.abc import Callable, Collection

_SPACES = " \t"
_QUOTES = "\"'`´‘’‚“”„«»‹›「」『』《》〈〉"
_OPENING_CHARACTERS = _QUOTES + "([（【¿¡"
_CLOSING_CHARACTERS = _QUOTES + ")]）】.,;:!?…-–—/、。，；：！？।،؛؟"
_WORD = re.compile(r"[ \t]+(?P<word>[^\W_][\w.-]*)")
_COMPLETE_ENDS = (">", "]")  # ends of complete markers; others, such as `<function=`, need more text
_CODE_SIGN = re.compile(r"[{\[<]|\w\(|\w=")
_NAME_BEGINNING = re.compile(r"[\w.:/-]*", re.ASCII)
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][\w:.-]*)>|\[/?[A-Z_]+\]")
_MARKUP = re.compile(rf"{_TAG.pattern}|>>>\w+\n")
_ORDINARY_MARKUP = re.compile(r"</?[A-Za-z]|\[[A-Z]")


def is_marker_mentioned(marker: str, next_text: str, names: Collection[str], *, is_all_text: bool) -> bool | None:
    """Return whether a marker within a line is a word of a sentence, or None if more text is needed.

    The result is True if a space and a word that is not a tool's name follow the marker, or punctuation such as a
    closing quote or bracket, a comma, a full stop or a dash. After a marker in square brackets, a quote or a minus
    sign that follows a space does not count.

    Args:
        marker: the marker.
        next_text: the beginning of the text after the marker.
        names: the names of the offered tools.
        is_all_text: whether `next_text` does not get longer.
    """
    after_spaces = next_text.lstrip(_SPACES)
    if not after_spaces:
        return False if is_all_text else None
    if after_spaces[0] in _CLOSING_CHARACTERS:
        return not (after_spaces[0] in "-'\"" and len(after_spaces) < len(next_text) and marker.endswith("]"))
    next_word = _WORD.match(next_text)
    if next_word is None:
        return False
    if next_word.end() == len(next_text) and not is_all_text:
        return None
    return next_word["word"] not in names


def is_complete_marker(marker: str) -> bool:
    """Return whether the marker of a call is complete, so that it may be a word of a sentence."""
    return marker.endswith(_COMPLETE_ENDS)


def is_reasoning_start_mentioned(previous_character: str) -> bool:
    """Return whether a start marker of reasoning after this character is only mentioned.

    This is so after a letter, a digit, or an opening quote or bracket.
    """
    return previous_character.isalnum() or (previous_character != "" and previous_character in _OPENING_CHARACTERS)


def is_reasoning_end_mentioned(previous_character: str) -> bool:
    """Return whether an end marker of reasoning after this character may be only mentioned.

    This is so after a space, a tab, or an opening quote or bracket.
    """
    return previous_character != "" and previous_character in _OPENING_CHARACTERS + _SPACES


def is_prose(body: str, names: Collection[str], *, begins_in_line: bool, is_truncated: bool) -> bool:
    """Return whether unreadable text after a call's marker is a sentence about calls.

    This is so if the text has neither a tool's name nor code, and the marker either stands within a line or is followed
    by a space and a word.

    Args:
        body: the text after the marker.
        names: the names of the offered tools.
        begins_in_line: whether words stand before the marker on its line.
        is_truncated: whether the text ended before the block; a single word may then be the beginning of a name.
    """
    word = body.strip()
    if not (begins_in_line or _WORD.match(body)) or _CODE_SIGN.search(body) or any(name in body for name in names):
        return False
    return not is_truncated or _NAME_BEGINNING.fullmatch(word) is None


def is_bare_name(body: str) -> bool:
    """Return whether the body of a call has no sign of code, so that it can only be a name or words."""
    return _CODE_SIGN.search(body) is None


def is_markup_token(token: str) -> bool:
    """Return whether a token is a tag, `<name>` or `</name>`, or a word in brackets, `[WORD]`."""
    return _TAG.fullmatch(token) is not None


def is_control_token(token: str) -> bool:
    """Return whether a token cannot be ordinary text; tags, words in brackets and `>>>name` lines can."""
    return _MARKUP.fullmatch(token) is None


def may_be_ordinary_text(start_marker: str) -> bool:
    """Return whether the marker of a call may be a word of ordinary text: markup, or a word in brackets."""
    return _ORDINARY_MARKUP.match(start_marker) is not None


def is_leaked_at_end(token: str, previous_character: str, is_opened: Callable[[str], bool]) -> bool:
    """Return whether a token at the end of an answer was leaked by the server, so that it is not text.

    This is so for control tokens, and for tags that close no other tag. Words in brackets are text.

    Args:
        token: the token.
        previous_character: the character before the token; "" at the beginning. A tag after white space or at the
            beginning is text.
        is_opened: returns whether a tag of this name stands before the token.
    """
    match = _MARKUP.fullmatch(token)
    if match is None:
        return True
    is_closing = not match["name"] or (match["end"] and is_opened(match["name"]))
    return not is_closing and previous_character.strip() != ""
