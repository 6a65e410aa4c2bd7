"""The pieces of a text that is meant to be JSON: strings in any quotes, comments, marks, words. Joined, they are the
text again. No text makes it raise, and it takes time in proportion to the text."""

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
    kind: str
    text: str

    @property
    def closed(self) -> bool:
        """Whether a string or comment has its end; true for everything else."""
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
        """What stands between a string's quotes."""
        return self.text[1:-1] if self.closed else self.text[1:]


def tokenise(text: str) -> list[Token]:
    return [Token(str(found.lastgroup), found.group()) for found in _TOKEN.finditer(text)]


def join_tokens(tokens: Iterable[Token]) -> str:
    return "".join(token.text for token in tokens)


def is_significant(token: Token) -> bool:
    return token.kind not in (SPACE, COMMENT)


def iterate_with_neighbours(tokens: Sequence[Token]) -> Iterator[tuple[str, Token, str]]:
    """Every token with the text of the one before and the one after it, white space and comments left out."""
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
    """The objects that stand in a text one after or beside the other, each as far as its brackets go, and all the text
    outside of them. An object that is not closed counts as text outside."""
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
