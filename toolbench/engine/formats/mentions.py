"""Markers that a text only speaks of, told by the words around them."""

import re
from collections.abc import Callable, Collection

_BLANKS = " \t"
_QUOTES = "\"'`´‘’‚“”„«»‹›「」『』《》〈〉"
_OPENING = _QUOTES + "([（【¿¡"
_CLOSING = _QUOTES + ")]）】.,;:!?…-–—/、。，；：！？।،؛؟"
_WORD = re.compile(r"[ \t]+(?P<word>[^\W_][\w.-]*)")
_WHOLE = (">", "]")  # ends of markers that nothing else belongs to; others go on, such as `<function=`
_CODE = re.compile(r"[{\[<]|\w\(|\w=")
_PLAIN_WORD = re.compile(r"[\w.:/-]*", re.ASCII)
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][\w:.-]*)>|\[/?[A-Z_]+\]")
_MARKUP = re.compile(rf"{_TAG.pattern}|>>>\w+\n")
_NATURAL = re.compile(r"</?[A-Za-z]|\[[A-Z]")


def is_mentioned(marker: str, head: str, names: Collection[str], *, complete: bool) -> bool | None:
    """Return whether a marker in the middle of a line is a word of a sentence, as `head` behind it shows: a blank and
    a word that names no tool, or what closes a quotation, bracket or sentence. None while more must be seen."""
    rest = head.lstrip(_BLANKS)
    if not rest:
        return False if complete else None
    if rest[0] in _CLOSING:
        return not (rest[0] == "[" or (rest[0] in "-'\"" and len(rest) < len(head) and marker.endswith("]")))
    found = _WORD.match(head)
    if found is None:
        return False
    if found.end() == len(head) and not complete:
        return None
    return found["word"] not in names


def is_complete_marker(marker: str) -> bool:
    """Return whether a call's marker is complete, so that it may be a word of a sentence."""
    return marker.endswith(_WHOLE)


def is_start_in_words(before: str) -> bool:
    """Return whether no thought can open behind this character: it is a letter, or opens a quotation or bracket."""
    return before.isalnum() or (before != "" and before in _OPENING)


def is_end_in_words(before: str) -> bool:
    """Return whether a closer behind this character may be a word of a sentence."""
    return before != "" and before in _OPENING + _BLANKS


def is_prose(body: str, names: Collection[str], *, in_line: bool, cut: bool) -> bool:
    """Return whether what stands behind a call's marker and cannot be read are words about calls: in the middle of a
    line, or behind a blank, without anything that a call is made of and without a tool's name."""
    word = body.strip()
    if not (in_line or _WORD.match(body)) or _CODE.search(body) or any(name in body for name in names):
        return False
    return not cut or _PLAIN_WORD.fullmatch(word) is None


def is_bare_name(body: str) -> bool:
    """Return whether a call is nothing but a name."""
    return _CODE.search(body) is None


def is_tag(token: str) -> bool:
    """Return whether a token is written as markup or as a word in brackets."""
    return _TAG.fullmatch(token) is not None


def is_control(token: str) -> bool:
    """Return whether a token cannot be natural text, as tags and what stands behind a prompt of Python's can."""
    return _MARKUP.fullmatch(token) is None


def is_natural(opener: str) -> bool:
    """Return whether a call's marker may be a word of ordinary text: markup, or a word in brackets."""
    return _NATURAL.match(opener) is not None


def is_leaked_at_end(token: str, before: str, is_opened: Callable[[str], bool]) -> bool:
    """Return whether a token at the end of an answer was leaked: a control token, or markup that closes nothing.

    Args:
        before: the character in front of the token; "" at the beginning. Markup behind a blank is no leak.
        is_opened: tells whether a tag of this name stands in front of the token.
    """
    found = _MARKUP.fullmatch(token)
    if found is None:
        return True
    closes = not found["name"] or (found["end"] and is_opened(found["name"]))
    return not closes and before.strip() != ""
