"""Tokens of a text that should be JSON: strings in any quotes, comments, punctuation, words.

The tokens joined together are the original text. No text raises an exception; the time is proportional to its length.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

SPACE, COMMENT, DOUBLE, SINGLE, SMART, PUNCTUATION, WORD = (
    "space",
    "comment",
    "double",
    "single",
    "smart",
    "mark",
    "word",
)
STRINGS = (DOUBLE, SINGLE, SMART)
CLOSING_BRACKETS = {"{": "}", "[": "]"}
_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<comment>//[^\n]*\n?|/\*(?:[^*]|\*(?!/))*(?:\*/)?)
    |(?P<double>"[^"\\]*(?:\\.[^"\\]*)*"?)
    |(?P<single>'[^'\\]*(?:\\.[^'\\]*)*'?)
    |(?P<smart>[“”„‟][^“”\\]*(?:\\.[^“”\\]*)*[“”]?|[‘’‚‛][^‘’\\]*(?:\\.[^‘’\\]*)*[‘’]?)
    |(?P<mark>[{}\[\]:,])
    |(?P<word>[^\s{}\[\]:,"'“”„‟‘’‚‛/]+|.)""",
    re.DOTALL | re.VERBOSE,
)
_CLOSING_QUOTES = {'"': '"', "'": "'", **dict.fromkeys("“”„‟", "“”"), **dict.fromkeys("‘’‚‛", "‘’")}


@dataclass(frozen=True, slots=True)
class Token:
    """A token: a part of the text, and its kind, one of the constants from `SPACE` to `WORD`."""

    kind: str
    text: str

    @property
    def is_closed(self) -> bool:
        """Whether a string or comment has its end; True for other kinds."""
        text = self.text
        if self.kind == COMMENT:
            return text.endswith("\n") if text.startswith("//") else text.endswith("*/") and len(text) > 3
        if self.kind not in STRINGS:
            return True
        before = text[:-1]
        escaped = (len(before) - len(before.rstrip("\\"))) % 2 == 1
        return len(text) > 1 and text[-1] in _CLOSING_QUOTES[text[0]] and not escaped

    @property
    def inside(self) -> str:
        """The text between the quotes of a string; up to the end of the token if it is not closed."""
        return self.text[1:-1] if self.is_closed else self.text[1:]


def tokenise(text: str) -> list[Token]:
    """Split a text into tokens."""
    return [Token(str(match.lastgroup), match.group()) for match in _TOKEN.finditer(text)]


def join_tokens(tokens: Iterable[Token]) -> str:
    """Return the text of the tokens."""
    return "".join(token.text for token in tokens)


def is_significant(token: Token) -> bool:
    """Return whether a token is neither white space nor a comment."""
    return token.kind not in (SPACE, COMMENT)


def iterate_with_neighbours(tokens: Sequence[Token]) -> Iterator[tuple[str, Token, str]]:
    """Yield each token with the texts of the nearest significant tokens before and after it; "" for none."""
    before = ""
    following = _iterate_following(tokens)
    for token, after in zip(tokens, following, strict=True):
        yield before, token, after
        if is_significant(token):
            before = token.text


def _iterate_following(tokens: Sequence[Token]) -> list[str]:
    following, after = [], ""
    for token in reversed(tokens):
        following.append(after)
        if is_significant(token):
            after = token.text
    return following[::-1]


def find_objects(text: str) -> tuple[list[str], str]:
    """Return the texts of the outermost objects in a text, in order, and the text outside of them.

    Each object ends at its closing bracket. An object that is not closed counts as text outside. Brackets in strings
    and comments do not count.
    """
    start = text.find("{")
    if start < 0:
        return [], text
    objects: list[str] = []
    outside, inside, depth = [text[:start]], [""], 0
    for token in tokenise(text[start:]):
        depth += token.kind == PUNCTUATION and token.text in CLOSING_BRACKETS
        (inside if depth else outside).append(token.text)
        if token.kind == PUNCTUATION and token.text in "}]" and depth:
            depth -= 1
            if not depth:
                objects.append("".join(inside))
                inside.clear()
    return objects, "".join([*outside, *inside])
