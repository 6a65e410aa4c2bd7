"""Repairs of how an object is written: comments, quotes, literals, escapes, commas, brackets."""

import json
import re
from collections.abc import Callable, Sequence

from toolbench.engine.repairs.tokens import (
    COMMENT,
    DOUBLE,
    MARK,
    OPENS,
    SINGLE,
    SMART,
    SPACE,
    WORD,
    Token,
    joined,
    says_something,
    tokens_of,
    with_neighbours,
)

_PYTHON = {"True": "true", "False": "false", "None": "null"}
_WHOLE_WORDS = ("true", "false", "null")
_CONTROL = re.compile(r"[\x00-\x1f]")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}|.)", re.DOTALL)
_QUOTE_OR_ESCAPE = re.compile(r"\\.|\"", re.DOTALL)
_KEY = re.compile(r"[^\W\d][\w$.-]*")


def comments(text: str) -> str:
    """Comments that have an end are dropped."""
    return joined(Token(SPACE, " ") if _is_comment(token) else token for token in tokens_of(text))


def smart_quotes(text: str) -> str:
    """Typographic quotes around a text become straight ones."""
    return joined(_double(token) if token.kind == SMART else token for token in tokens_of(text))


def single_quotes(text: str) -> str:
    """Single quotes around a text become double ones."""
    return joined(_double(token) if token.kind == SINGLE else token for token in tokens_of(text))


def python_literals(text: str) -> str:
    """True, False and None become true, false and null."""
    return joined(
        Token(WORD, _PYTHON.get(token.text, token.text)) if token.kind == WORD else token for token in tokens_of(text)
    )


def control_characters(text: str) -> str:
    """Line breaks, tabs and other control characters inside a text are written as escapes."""
    return _in_strings(text, lambda inside: _CONTROL.sub(lambda one: json.dumps(one.group())[1:-1], inside))


def invalid_escapes(text: str) -> str:
    """Escapes that JSON does not know: those of Python become their character, any other keeps its backslash."""
    return _in_strings(text, lambda inside: _ESCAPE.sub(_known_escape, inside))


def unquoted_keys(text: str) -> str:
    """Keys without quotes get them."""
    return joined(
        Token(DOUBLE, json.dumps(token.text, ensure_ascii=False)) if _is_bare_key(before, token, after) else token
        for before, token, after in with_neighbours(tokens_of(text))
    )


def trailing_commas(text: str) -> str:
    """A comma before a closing bracket is dropped."""
    return joined(
        token
        for _, token, after in with_neighbours(tokens_of(text))
        if not (token.text == "," and after and after in "}]")
    )


def missing_closers(text: str) -> str:
    """Closing brackets that are missing are added, where the last value is whole: behind a number, a comma or a key
    something else may have been about to come."""
    tokens = tokens_of(text)
    balanced, open_still = _balanced(tokens)
    if open_still and not _ends_whole(tokens):
        return text
    return balanced + open_still


def cut_value(text: str) -> str:
    """A text that breaks off inside a value is closed there, to show what was read of it. Never executed."""
    tokens = [token for token in tokens_of(text) if says_something(token)]
    if tokens and tokens[-1].text == "\\":
        tokens.pop()
    if tokens and not tokens[-1].closed:
        tokens[-1] = Token(DOUBLE, _double(tokens[-1]).text + '"')
    if tokens and tokens[-1].text == ",":
        tokens.pop()
    balanced, open_still = _balanced([*tokens, *_awaited(tokens)])
    return balanced + open_still


def _is_comment(token: Token) -> bool:
    return token.kind == COMMENT and token.closed


def _double(token: Token) -> Token:
    """The same string in double quotes; without its end where it has none."""
    inside = _QUOTE_OR_ESCAPE.sub(_straight, token.inside)
    return Token(DOUBLE, f'"{inside}"' if token.closed else f'"{inside}')


def _straight(found: re.Match[str]) -> str:
    part = found.group()
    if part == '"':
        return '\\"'
    return part[1] if part[1] in "'“”‘’" else part


def _in_strings(text: str, change: Callable[[str], str]) -> str:
    """The text with the inside of its double-quoted strings changed."""
    return joined(_changed(token, change) if token.kind == DOUBLE else token for token in tokens_of(text))


def _changed(token: Token, change: Callable[[str], str]) -> Token:
    inside = change(token.inside)
    return Token(DOUBLE, f'"{inside}"' if token.closed else f'"{inside}')


def _known_escape(found: re.Match[str]) -> str:
    escape = found.group(1)
    if escape in '"\\/bfnrt' or (len(escape) == 5 and escape[0] == "u"):
        return found.group()
    if escape == "'":
        return "'"
    if len(escape) > 1:
        return json.dumps(chr(int(escape[1:], 16)))[1:-1]
    return "\\\\" + escape


def _is_bare_key(before: str, token: Token, after: str) -> bool:
    return token.kind == WORD and after == ":" and before in ("{", ",") and bool(_KEY.fullmatch(token.text))


def _balanced(tokens: Sequence[Token]) -> tuple[str, str]:
    """The text, with an inner bracket closed before an outer one is, and the closers of what is open at its end."""
    parts: list[str] = []
    waiting: list[str] = []
    for token in tokens:
        if token.kind == MARK and token.text in OPENS:
            waiting.append(OPENS[token.text])
        elif token.kind == MARK and token.text in "}]" and token.text in waiting[-2:]:
            if waiting[-1] != token.text:
                parts.append(waiting.pop())
            waiting.pop()
        parts.append(token.text)
    return "".join(parts), "".join(reversed(waiting))


def _ends_whole(tokens: Sequence[Token]) -> bool:
    """Whether the last thing said is a value that nothing can lengthen, and not a key."""
    last = next((token for token in reversed(tokens) if says_something(token)), None)
    if last is None or last.text in _WHOLE_WORDS or last.text in ("}", "]"):
        return last is not None
    return last.kind == DOUBLE and last.closed and not _awaited(tokens)


def _awaited(tokens: Sequence[Token]) -> list[Token]:
    """What is missing of a pair of key and value at the end: nothing, a null, or a colon and a null."""
    said = [token for token in tokens if says_something(token)]
    null = [Token(MARK, ":"), Token(WORD, "null")]
    if not said:
        return []
    if said[-1].text == ":":
        return null[1:]
    in_object = _balanced(said)[1].startswith("}")
    is_key = said[-1].kind == DOUBLE and in_object and said[-2].text in ("{", ",")
    return null if is_key else []
