"""Rules that tell whether a text only mentions a marker, as in "Put calls in <tool_call> tags"."""

import re
from collections.abc import Callable, Collection

_SPACES = " \t"
_QUOTES = "\"'`´‘’‚“”„«»‹›「」『』《》〈〉"
_OPENING_CHARACTERS = _QUOTES + "([（【¿¡"
_PUNCTUATION_AFTER_WORD = _QUOTES + ")]）】.,;:!?…-–—/、。，；：！？।،؛؟"
_SPACES_AND_WORD = re.compile(r"[ \t]+(?P<word>[^\W_][\w.-]*)")
_COMPLETE_ENDS = (">", "]")
_CODE_SIGN = re.compile(r"[{\[<]|\w\(|\w=")  # as in `{"a": 1}`, `[1]`, `<a>`, `f(1)` and `a=1`
_NAME_BEGINNING = re.compile(r"[\w.:/-]*", re.ASCII)
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][\w:.-]*)>|\[/?[A-Z_]+\]")  # `<name>`, `</name>`, `[WORD]`, `[/WORD]`
_MARKUP = re.compile(rf"{_TAG.pattern}|>>>\w+\n")
_TAG_BEGINNING = re.compile(r"</?[A-Za-z]|\[[A-Z]")


def is_marker_mentioned(marker: str, next_text: str, names: Collection[str], *, is_all_text: bool) -> bool | None:
    """Return whether a marker within a line is a word of a sentence, or None if more text is needed.

    The result is True if one of these follows the marker:
    - spaces and a word that is not a tool's name
    - punctuation, also after spaces, such as a quote, a closing bracket, a comma, a full stop or a dash. After spaces,
      a quote or a hyphen does not count if the marker is in square brackets.

    Args:
        marker: the marker, such as `<tool_call>` or `[TOOL_CALLS]`.
        next_text: the beginning of the text after the marker.
        names: the names of the offered tools.
        is_all_text: whether `next_text` is complete; otherwise a later call gets more of it.
    """
    after_spaces = next_text.lstrip(_SPACES)
    if not after_spaces:
        return False if is_all_text else None
    if after_spaces[0] in _PUNCTUATION_AFTER_WORD:
        return not (after_spaces[0] in "-'\"" and len(after_spaces) < len(next_text) and marker.endswith("]"))
    next_word = _SPACES_AND_WORD.match(next_text)
    if next_word is None:
        return False
    if next_word.end() == len(next_text) and not is_all_text:
        return None
    return next_word["word"] not in names


def is_complete_marker(marker: str) -> bool:
    """Return whether the marker of a call is complete, as `<tool_call>` is and `<function=` is not.

    Only a complete marker may be a word of a sentence.
    """
    return marker.endswith(_COMPLETE_ENDS)


def is_reasoning_start_mentioned(previous_character: str) -> bool:
    """Return whether a start marker of reasoning after this character is only mentioned.

    The result is True after a letter, a digit, a quote, an opening bracket, `¿` and `¡`.
    """
    return previous_character.isalnum() or (previous_character != "" and previous_character in _OPENING_CHARACTERS)


def is_reasoning_end_mentioned(previous_character: str) -> bool:
    """Return whether an end marker of reasoning after this character may be only mentioned.

    The result is True after a space, a tab, a quote, an opening bracket, `¿` and `¡`.
    """
    return previous_character != "" and previous_character in _OPENING_CHARACTERS + _SPACES


def is_prose(body: str, names: Collection[str], *, begins_in_line: bool, is_truncated: bool) -> bool:
    """Return whether unreadable text after a call's marker is a sentence about calls.

    The result is True if the text has neither a tool's name nor code, and the marker either stands within a line or is
    followed by spaces and a word.

    Args:
        body: the text after the marker.
        names: the names of the offered tools.
        begins_in_line: whether words stand before the marker on its line.
        is_truncated: whether the answer ended before the call did. The result is then False for a single word, which
            may be the beginning of a name.
    """
    has_word_before_or_after = begins_in_line or _SPACES_AND_WORD.match(body) is not None
    if not has_word_before_or_after or _CODE_SIGN.search(body) or any(name in body for name in names):
        return False
    return not is_truncated or _NAME_BEGINNING.fullmatch(body.strip()) is None


def is_bare_name(body: str) -> bool:
    """Return whether the body of a call has no sign of code, so that it can only be a name or words."""
    return _CODE_SIGN.search(body) is None


def is_markup_token(token: str) -> bool:
    """Return whether a token has the form `<name>`, `</name>`, `[WORD]` or `[/WORD]`."""
    return _TAG.fullmatch(token) is not None


def is_control_token(token: str) -> bool:
    """Return whether a token, such as `<|im_end|>`, cannot be ordinary text.

    Tags, words in brackets and lines such as `>>>name` can be ordinary text.
    """
    return _MARKUP.fullmatch(token) is None


def may_be_ordinary_text(start_marker: str) -> bool:
    """Return whether ordinary text may contain the marker: it begins like a tag or a word in brackets."""
    return _TAG_BEGINNING.match(start_marker) is not None


def is_leaked_at_end(token: str, previous_character: str, is_opened: Callable[[str], bool]) -> bool:
    """Return whether a token at the end of an answer was leaked by the server, so that it is not text.

    Control tokens are leaked, and so are tags that directly follow other text and close no other tag. Words in brackets
    and lines such as `>>>name` are text.

    Args:
        token: the token.
        previous_character: the character before the token; "" at the beginning of the answer.
        is_opened: returns whether a start tag of this name stands before the token.
    """
    match = _MARKUP.fullmatch(token)
    if match is None:
        return True
    is_tag = match["name"] is not None
    closes_other_tag = is_tag and match["end"] != "" and is_opened(match["name"])
    return is_tag and not closes_other_tag and previous_character.strip() != ""
