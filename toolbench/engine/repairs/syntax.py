"""Repairs of the syntax of an object: comments, quotes, literals, escapes, commas, brackets."""

import json
import re
from collections.abc import Callable, Sequence

from toolbench.engine.repairs.tokens import (
    CLOSING_BRACKETS,
    COMMENT,
    DOUBLE,
    PUNCTUATION,
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

_JSON_LITERALS = {"True": "true", "False": "false", "None": "null"}
_JSON_WORDS = ("true", "false", "null")
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f]")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}|.)", re.DOTALL)
_QUOTE_OR_ESCAPE = re.compile(r"\\.|\"", re.DOTALL)
_KEY = re.compile(r"[^\W\d][\w$.-]*")


def comments(text: str) -> str:
    """Remove comments that have an end."""
    return join_tokens(Token(SPACE, " ") if _is_comment(token) else token for token in tokenise(text))


def smart_quotes(text: str) -> str:
    """Replace typographic quotes around strings by double ones."""
    return join_tokens(_requote_double(token) if token.kind == SMART else token for token in tokenise(text))


def single_quotes(text: str) -> str:
    """Replace single quotes around strings by double ones."""
    return join_tokens(_requote_double(token) if token.kind == SINGLE else token for token in tokenise(text))


def python_literals(text: str) -> str:
    """Replace True, False and None by true, false and null."""
    return join_tokens(
        Token(WORD, _JSON_LITERALS.get(token.text, token.text)) if token.kind == WORD else token
        for token in tokenise(text)
    )


def control_characters(text: str) -> str:
    """Escape line breaks, tabs and other control characters inside double-quoted strings."""
    return _map_strings(
        text, lambda content: _CONTROL_CHARACTER.sub(lambda match: json.dumps(match.group())[1:-1], content)
    )


def invalid_escapes(text: str) -> str:
    r"""Replace Python's escapes \x and \U by their characters; other invalid escapes keep their backslash."""
    return _map_strings(text, lambda content: _ESCAPE.sub(_replace_escape, content))


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

    After a number, a comma or a key, more text may have followed, so nothing is added.
    """
    tokens = tokenise(text)
    balanced, missing_brackets = _balance_brackets(tokens)
    if missing_brackets and not _is_last_value_complete(tokens):
        return text
    return balanced + missing_brackets


def cut_value(text: str) -> str:
    """Close a text that ends inside a value, to show the part that arrived. Never executed."""
    tokens = [token for token in tokenise(text) if is_significant(token)]
    if tokens and tokens[-1].text == "\\":
        tokens.pop()
    if tokens and not tokens[-1].is_closed:
        tokens[-1] = Token(DOUBLE, _requote_double(tokens[-1]).text + '"')
    if tokens and tokens[-1].text == ",":
        tokens.pop()
    balanced, missing_brackets = _balance_brackets([*tokens, *_build_missing_pair_end(tokens)])
    return balanced + missing_brackets


def _is_comment(token: Token) -> bool:
    return token.kind == COMMENT and token.is_closed


def _requote_double(token: Token) -> Token:
    """Return a string token in double quotes; without the closing quote if the token has none."""
    content = _QUOTE_OR_ESCAPE.sub(_replace_quote_or_escape, token.inside)
    return Token(DOUBLE, f'"{content}"' if token.is_closed else f'"{content}')


def _replace_quote_or_escape(match: re.Match[str]) -> str:
    text = match.group()
    if text == '"':
        return '\\"'
    return text[1] if text[1] in "'“”‘’" else text


def _map_strings(text: str, change: Callable[[str], str]) -> str:
    """Return the text with the inside of its double-quoted strings changed."""
    return join_tokens(_replace_inside(token, change) if token.kind == DOUBLE else token for token in tokenise(text))


def _replace_inside(token: Token, change: Callable[[str], str]) -> Token:
    content = change(token.inside)
    return Token(DOUBLE, f'"{content}"' if token.is_closed else f'"{content}')


def _replace_escape(match: re.Match[str]) -> str:
    escape = match.group(1)
    if escape in '"\\/bfnrt' or (len(escape) == 5 and escape[0] == "u"):
        return match.group()
    if escape == "'":
        return "'"
    if len(escape) > 1:
        return json.dumps(chr(int(escape[1:], 16)))[1:-1]
    return "\\\\" + escape


def _is_bare_key(before: str, token: Token, after: str) -> bool:
    return token.kind == WORD and after == ":" and before in ("{", ",") and bool(_KEY.fullmatch(token.text))


def _balance_brackets(tokens: Sequence[Token]) -> tuple[str, str]:
    """Join the tokens, and add each closing bracket that is missing before the next outer one.

    Returns:
        The text, and the closing brackets that are still missing at its end.
    """
    parts: list[str] = []
    open_brackets: list[str] = []
    for token in tokens:
        if token.kind == PUNCTUATION and token.text in CLOSING_BRACKETS:
            open_brackets.append(CLOSING_BRACKETS[token.text])
        elif token.kind == PUNCTUATION and token.text in "}]" and token.text in open_brackets[-2:]:
            if open_brackets[-1] != token.text:
                parts.append(open_brackets.pop())
            open_brackets.pop()
        parts.append(token.text)
    return "".join(parts), "".join(reversed(open_brackets))


def _is_last_value_complete(tokens: Sequence[Token]) -> bool:
    """Return whether the text ends with a complete value: a bracket, a string that is no key, true, false or null.

    A number does not count, because further digits may have followed.
    """
    last = next((token for token in reversed(tokens) if is_significant(token)), None)
    if last is None or last.text in _JSON_WORDS or last.text in ("}", "]"):
        return last is not None
    return last.kind == DOUBLE and last.is_closed and not _build_missing_pair_end(tokens)


def _build_missing_pair_end(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens that complete the last key and value: none, a null, or a colon and a null."""
    significant = [token for token in tokens if is_significant(token)]
    null_value = [Token(PUNCTUATION, ":"), Token(WORD, "null")]
    if not significant:
        return []
    if significant[-1].text == ":":
        return null_value[1:]
    in_object = _balance_brackets(significant)[1].startswith("}")
    is_key = significant[-1].kind == DOUBLE and in_object and significant[-2].text in ("{", ",")
    return null_value if is_key else []
