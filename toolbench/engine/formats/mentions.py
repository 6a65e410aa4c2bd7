"""Detection of markers that a text only mentions, by the text around them."""

import re
from collections.abc import Callable, Collection

_BLANKS = " \t"
_QUOTES = "\"'`´‘’‚“”„«»‹›「」『』《》〈〉"
_OPENING = _QUOTES + "([（【¿¡"
_CLOSING = _QUOTES + ")]）】.,;:!?…-–—/、。，；：！？।،؛؟"
_WORD = re.compile(r"[ \t]+(?P<word>[^\W_][\w.-]*)")
_COMPLETE_ENDS = (">", "]")  # ends of complete markers; others, such as `<function=`, need more text
_CODE = re.compile(r"[{\[<]|\w\(|\w=")
_PLAIN_WORD = re.compile(r"[\w.:/-]*", re.ASCII)
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][\w:.-]*)>|\[/?[A-Z_]+\]")
_MARKUP = re.compile(rf"{_TAG.pattern}|>>>\w+\n")
_NATURAL = re.compile(r"</?[A-Za-z]|\[[A-Z]")


def is_mentioned(marker: str, head: str, names: Collection[str], *, complete: bool) -> bool | None:
    """Return whether a marker within a line is a word of a sentence, or None if more text is needed.

    The result is True if a blank and a word that is not a tool's name follow the marker, or a character that closes a
    quotation, a bracket or a sentence.

    Args:
        marker: the marker.
        head: the beginning of the text after the marker.
        names: the names of the offered tools.
        complete: whether `head` does not get longer.
    """
    after_blanks = head.lstrip(_BLANKS)
    if not after_blanks:
        return False if complete else None
    if after_blanks[0] in _CLOSING:
        return not (
            after_blanks[0] == "["
            or (after_blanks[0] in "-'\"" and len(after_blanks) < len(head) and marker.endswith("]"))
        )
    next_word = _WORD.match(head)
    if next_word is None:
        return False
    if next_word.end() == len(head) and not complete:
        return None
    return next_word["word"] not in names


def is_complete_marker(marker: str) -> bool:
    """Return whether the marker of a call is complete, so that it may be a word of a sentence."""
    return marker.endswith(_COMPLETE_ENDS)


def is_start_in_words(before: str) -> bool:
    """Return whether a start marker of reasoning after this character is only mentioned.

    This is so after a letter, a digit, or an opening quote or bracket.
    """
    return before.isalnum() or (before != "" and before in _OPENING)


def is_end_in_words(before: str) -> bool:
    """Return whether an end marker of reasoning after this character may be only mentioned."""
    return before != "" and before in _OPENING + _BLANKS


def is_prose(body: str, names: Collection[str], *, in_line: bool, cut: bool) -> bool:
    """Return whether unreadable text after a call's marker is a sentence about calls.

    This is so if the marker stands within a line or a blank follows it, and the text has neither a tool's name nor
    code.

    Args:
        body: the text after the marker.
        names: the names of the offered tools.
        in_line: whether words stand before the marker on its line.
        cut: whether the text ended before the block; a single word may then be the beginning of a name.
    """
    word = body.strip()
    if not (in_line or _WORD.match(body)) or _CODE.search(body) or any(name in body for name in names):
        return False
    return not cut or _PLAIN_WORD.fullmatch(word) is None


def is_bare_name(body: str) -> bool:
    """Return whether the body of a call is only a name."""
    return _CODE.search(body) is None


def is_tag(token: str) -> bool:
    """Return whether a token is written as markup or as a word in brackets."""
    return _TAG.fullmatch(token) is not None


def is_control(token: str) -> bool:
    """Return whether a token cannot be ordinary text; tags, words in brackets and `>>>name` lines can."""
    return _MARKUP.fullmatch(token) is None


def is_natural(opener: str) -> bool:
    """Return whether the marker of a call may be a word of ordinary text: markup, or a word in brackets."""
    return _NATURAL.match(opener) is not None


def is_leaked_at_end(token: str, before: str, is_opened: Callable[[str], bool]) -> bool:
    """Return whether a token at the end of an answer was leaked.

    Control tokens and markup that closes nothing are leaked.

    Args:
        token: the token.
        before: the character before the token; "" at the beginning. Markup after a blank is not leaked.
        is_opened: returns whether a tag of this name stands before the token.
    """
    match = _MARKUP.fullmatch(token)
    if match is None:
        return True
    is_closing = not match["name"] or (match["end"] and is_opened(match["name"]))
    return not is_closing and before.strip() != ""
