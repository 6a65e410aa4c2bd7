"""Tokens of a text that is meant to be JSON: strings in any quotes, comments, marks, words.

Joined, the tokens are the text again. No text raises an exception; the time is proportional to its length.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

SPACE, COMMENT, DOUBLE, SINGLE, SMART, MARK, WORD = "space", "comment", "double", "single", "smart", "mark", "word"
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
_ENDS = {'"': '"', "'": "'", **dict.fromkeys("“”„‟", "“”"), **dict.fromkeys("‘’‚‛", "‘’")}


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its kind."""

    kind: str
    text: str

    @property
    def closed(self) -> bool:
        """Whether a string or comment has its end; True for other kinds."""
        text = self.text
        if self.kind == COMMENT:
            return text.endswith("\n") if text.startswith("//") else text.endswith("*/") and len(text) > 3
        if self.kind not in STRINGS:
            return True
        before = text[:-1]
        escaped = (len(before) - len(before.rstrip("\\"))) % 2 == 1
        return len(text) > 1 and text[-1] in _ENDS[text[0]] and not escaped

    @property
    def inside(self) -> str:
        """The text between a string's quotes."""
        return self.text[1:-1] if self.closed else self.text[1:]


def tokenise(text: str) -> list[Token]:
    """Return the tokens of a text."""
    return [Token(str(found.lastgroup), found.group()) for found in _TOKEN.finditer(text)]


def join_tokens(tokens: Iterable[Token]) -> str:
    """Return the text of the tokens."""
    return "".join(token.text for token in tokens)


def is_significant(token: Token) -> bool:
    """Return whether a token is neither white space nor a comment."""
    return token.kind not in (SPACE, COMMENT)


def iterate_with_neighbours(tokens: Sequence[Token]) -> Iterator[tuple[str, Token, str]]:
    """Yield each token with the text of the significant tokens before and after it."""
    before = ""
    following = _iterate_following(tokens)
    for token, after in zip(tokens, following, strict=True):
        yield before, token, after
        if is_significant(token):
            before = token.text


def _iterate_following(tokens: Sequence[Token]) -> list[str]:
    found, after = [], ""
    for token in reversed(tokens):
        found.append(after)
        if is_significant(token):
            after = token.text
    return found[::-1]


def find_objects(text: str) -> tuple[list[str], str]:
    """Return the objects that stand one after the other in a text, and the text outside of them.

    Each object ends at its closing bracket. An object that is not closed counts as text outside.
    """
    start = text.find("{")
    if start < 0:
        return [], text
    found: list[str] = []
    outside, inside, depth = [text[:start]], [""], 0
    for token in tokenise(text[start:]):
        depth += token.kind == MARK and token.text in CLOSING_BRACKETS
        (inside if depth else outside).append(token.text)
        if token.kind == MARK and token.text in "}]" and depth:
            depth -= 1
            if not depth:
                found.append("".join(inside))
                inside.clear()
    return found, "".join([*outside, *inside])
