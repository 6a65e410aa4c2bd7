"""Repairs of the syntax of an object: comments, quotes, literals, escapes, commas, brackets."""

import json
import re
from collections.abc import Callable, Sequence

from toolbench.engine.repairs.tokens import (
    CLOSING_BRACKETS,
    COMMENT,
    DOUBLE,
    MARK,
    SINGLE,
    SMART,
    SPACE,
    WORD,
    Token,
    is_significant,
    iterate_with_neighbours,
    join_tokens,
    tokenise,
)

_PYTHON = {"True": "true", "False": "false", "None": "null"}
_WHOLE_WORDS = ("true", "false", "null")
_CONTROL = re.compile(r"[\x00-\x1f]")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}|.)", re.DOTALL)
_QUOTE_OR_ESCAPE = re.compile(r"\\.|\"", re.DOTALL)
_KEY = re.compile(r"[^\W\d][\w$.-]*")


def comments(text: str) -> str:
    """Remove comments that have an end."""
    return join_tokens(Token(SPACE, " ") if _is_comment(token) else token for token in tokenise(text))


def smart_quotes(text: str) -> str:
    """Replace typographic quotes around a text by straight ones."""
    return join_tokens(_requote_double(token) if token.kind == SMART else token for token in tokenise(text))


def single_quotes(text: str) -> str:
    """Replace single quotes around a text by double ones."""
    return join_tokens(_requote_double(token) if token.kind == SINGLE else token for token in tokenise(text))


def python_literals(text: str) -> str:
    """Replace True, False and None by true, false and null."""
    return join_tokens(
        Token(WORD, _PYTHON.get(token.text, token.text)) if token.kind == WORD else token for token in tokenise(text)
    )


def control_characters(text: str) -> str:
    """Escape line breaks, tabs and other control characters inside a text."""
    return _map_strings(text, lambda inside: _CONTROL.sub(lambda match: json.dumps(match.group())[1:-1], inside))


def invalid_escapes(text: str) -> str:
    """Replace Python's escapes by their character; other unknown escapes keep their backslash."""
    return _map_strings(text, lambda inside: _ESCAPE.sub(_replace_escape, inside))


def unquoted_keys(text: str) -> str:
    """Add quotes to keys without them."""
    return join_tokens(
        Token(DOUBLE, json.dumps(token.text, ensure_ascii=False)) if _is_bare_key(before, token, after) else token
        for before, token, after in iterate_with_neighbours(tokenise(text))
    )


def trailing_commas(text: str) -> str:
    """Remove a comma before a closing bracket."""
    return join_tokens(
        token
        for _, token, after in iterate_with_neighbours(tokenise(text))
        if not (token.text == "," and after and after in "}]")
    )


def missing_closers(text: str) -> str:
    """Add missing closing brackets if the last value is complete.

    After a number, a comma or a key, more may have followed.
    """
    tokens = tokenise(text)
    balanced, open_still = _balance_brackets(tokens)
    if open_still and not _is_last_value_complete(tokens):
        return text
    return balanced + open_still


def cut_value(text: str) -> str:
    """Close a text that breaks off inside a value, to show what was read of it. Never executed."""
    tokens = [token for token in tokenise(text) if is_significant(token)]
    if tokens and tokens[-1].text == "\\":
        tokens.pop()
    if tokens and not tokens[-1].closed:
        tokens[-1] = Token(DOUBLE, _requote_double(tokens[-1]).text + '"')
    if tokens and tokens[-1].text == ",":
        tokens.pop()
    balanced, open_still = _balance_brackets([*tokens, *_get_missing_pair_end(tokens)])
    return balanced + open_still


def _is_comment(token: Token) -> bool:
    return token.kind == COMMENT and token.closed


def _requote_double(token: Token) -> Token:
    """Return the string in double quotes; without the closing quote if it has none."""
    inside = _QUOTE_OR_ESCAPE.sub(_straighten, token.inside)
    return Token(DOUBLE, f'"{inside}"' if token.closed else f'"{inside}')


def _straighten(found: re.Match[str]) -> str:
    part = found.group()
    if part == '"':
        return '\\"'
    return part[1] if part[1] in "'“”‘’" else part


def _map_strings(text: str, change: Callable[[str], str]) -> str:
    """Return the text with the inside of its double-quoted strings changed."""
    return join_tokens(_replace_inside(token, change) if token.kind == DOUBLE else token for token in tokenise(text))


def _replace_inside(token: Token, change: Callable[[str], str]) -> Token:
    inside = change(token.inside)
    return Token(DOUBLE, f'"{inside}"' if token.closed else f'"{inside}')


def _replace_escape(found: re.Match[str]) -> str:
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


def _balance_brackets(tokens: Sequence[Token]) -> tuple[str, str]:
    """Return the text with inner brackets closed before outer ones.

    Returns:
        The text, and the closing brackets that its end still needs.
    """
    parts: list[str] = []
    waiting: list[str] = []
    for token in tokens:
        if token.kind == MARK and token.text in CLOSING_BRACKETS:
            waiting.append(CLOSING_BRACKETS[token.text])
        elif token.kind == MARK and token.text in "}]" and token.text in waiting[-2:]:
            if waiting[-1] != token.text:
                parts.append(waiting.pop())
            waiting.pop()
        parts.append(token.text)
    return "".join(parts), "".join(reversed(waiting))


def _is_last_value_complete(tokens: Sequence[Token]) -> bool:
    """Return whether the text ends with a value that nothing can lengthen, and not with a key."""
    last = next((token for token in reversed(tokens) if is_significant(token)), None)
    if last is None or last.text in _WHOLE_WORDS or last.text in ("}", "]"):
        return last is not None
    return last.kind == DOUBLE and last.closed and not _get_missing_pair_end(tokens)


def _get_missing_pair_end(tokens: Sequence[Token]) -> list[Token]:
    """Return what the last pair of key and value lacks: nothing, a null, or a colon and a null."""
    significant = [token for token in tokens if is_significant(token)]
    null = [Token(MARK, ":"), Token(WORD, "null")]
    if not significant:
        return []
    if significant[-1].text == ":":
        return null[1:]
    in_object = _balance_brackets(significant)[1].startswith("}")
    is_key = significant[-1].kind == DOUBLE and in_object and significant[-2].text in ("{", ",")
    return null if is_key else []
