"""Tokens of a text that should be JSON: strings in any quotes, comments, punctuation, words.

The tokens joined together are the original text. No text raises an exception; the time is proportional to its length.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

SPACE, COMMENT, DOUBLE_QUOTED, SINGLE_QUOTED, SMART_QUOTED, PUNCTUATION, WORD = (
    "space",
    "comment",
    "double",
    "single",
    "smart",
    "mark",
    "word",
)
STRING_KINDS = (DOUBLE_QUOTED, SINGLE_QUOTED, SMART_QUOTED)
CLOSING_BRACKETS = {"{": "}", "[": "]"}
MAX_STRAY_BRACKETS = 4  # keeps the time of `find_objects` proportional to the length of the text
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
# The characters that can close a string, by its opening quote.
_CLOSING_QUOTES = {'"': '"', "'": "'", **dict.fromkeys("“”„‟", "“”"), **dict.fromkeys("‘’‚‛", "‘’")}


@dataclass(frozen=True, slots=True)
class Token:
    """A part of the text with its kind, which is one of the constants from `SPACE` to `WORD`."""

    kind: str
    text: str

    @property
    def is_closed(self) -> bool:
        """Whether a string or comment has its end; True for other kinds."""
        text = self.text
        if self.kind == COMMENT:
            return text.endswith("\n") if text.startswith("//") else text.endswith("*/") and len(text) > 3
        if self.kind not in STRING_KINDS:
            return True
        text_before_end = text[:-1]
        is_escaped = (len(text_before_end) - len(text_before_end.rstrip("\\"))) % 2 == 1
        return len(text) > 1 and text[-1] in _CLOSING_QUOTES[text[0]] and not is_escaped

    @property
    def content(self) -> str:
        """The text between the quotes of a string; up to the end of the token if it is not closed."""
        return self.text[1:-1] if self.is_closed else self.text[1:]


def tokenise(text: str) -> list[Token]:
    """Split a text into tokens."""
    return [Token(str(match.lastgroup), match.group()) for match in _TOKEN.finditer(text)]


def join_tokens(tokens: Iterable[Token]) -> str:
    """Return the joined texts of the tokens."""
    return "".join(token.text for token in tokens)


def is_significant(token: Token) -> bool:
    """Return whether a token is neither white space nor a comment."""
    return token.kind not in (SPACE, COMMENT)


def iterate_with_neighbours(tokens: Sequence[Token]) -> Iterator[tuple[str, Token, str]]:
    """Yield each token with the texts of the nearest significant tokens before and after it; "" for none."""
    text_before = ""
    texts_after = _list_texts_after(tokens)
    for token, text_after in zip(tokens, texts_after, strict=True):
        yield text_before, token, text_after
        if is_significant(token):
            text_before = token.text


def _list_texts_after(tokens: Sequence[Token]) -> list[str]:
    """Return, for each token, the text of the next significant token; "" for none."""
    texts_after, text_after = [], ""
    for token in reversed(tokens):
        texts_after.append(text_after)
        if is_significant(token):
            text_after = token.text
    return texts_after[::-1]


def find_objects(text: str) -> tuple[list[str], str]:
    """Return the texts of the outermost objects in a text, in order, and the text outside of them.

    An object ends when all its brackets are closed, by closing brackets of either kind. An object that is not closed
    counts as text outside. From the first `{` on, brackets in strings and comments do not count. If a `{` that is not
    closed begins no object, such as one in prose, the search starts again after it, up to MAX_STRAY_BRACKETS times.
    """
    object_texts: list[str] = []
    outside_parts: list[str] = []
    for _ in range(MAX_STRAY_BRACKETS + 1):
        start = text.find("{")
        if start < 0:
            break
        closed_texts, outside_text, unclosed_tokens = _split_objects(text[start:])
        object_texts += closed_texts
        outside_parts += [text[:start], outside_text]
        text = join_tokens(unclosed_tokens)
        if not text or _begins_object(unclosed_tokens):
            break
        outside_parts.append("{")
        text = text[1:]
    return object_texts, "".join([*outside_parts, text])


def _split_objects(text: str) -> tuple[list[str], str, list[Token]]:
    """Return the texts of the closed objects, the text outside, and the tokens of an object that is not closed."""
    object_texts: list[str] = []
    outside_parts, object_tokens, depth = list[str](), list[Token](), 0
    for token in tokenise(text):
        depth += token.kind == PUNCTUATION and token.text in (CLOSING_BRACKETS if depth else "{")
        if depth:
            object_tokens.append(token)
        else:
            outside_parts.append(token.text)
        if token.kind == PUNCTUATION and token.text in "}]" and depth:
            depth -= 1
            if not depth:
                object_texts.append(join_tokens(object_tokens))
                object_tokens.clear()
    return object_texts, "".join(outside_parts), object_tokens


def _begins_object(tokens: Sequence[Token]) -> bool:
    """Return whether tokens that begin with `{` go on with a key and a colon, or with a second `{`."""
    match list(islice(filter(is_significant, tokens[1:]), 2)):
        case [Token(text="{"), *_]:
            return True
        case [Token(kind=kind), Token(text=":")]:
            return kind in (*STRING_KINDS, WORD)
        case _:
            return False
