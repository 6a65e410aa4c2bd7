"""Repairs of the syntax of an object: comments, quotes, literals, escapes, commas, brackets.

Each public function is a repair and has the name of the repair in the policy.
"""

import json
import re
from collections.abc import Callable, Sequence

from toolbench.engine.repairs.tokens import (
    CLOSING_BRACKETS,
    COMMENT,
    DOUBLE_QUOTED,
    PUNCTUATION,
    SINGLE_QUOTED,
    SMART_QUOTED,
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
# An escape of JSON or Python, or of neither, such as `\q`. Python's \U has eight digits, at most 0010FFFF.
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}|.)", re.DOTALL)
_QUOTE_OR_ESCAPE = re.compile(r"\\.|\"", re.DOTALL)
_KEY = re.compile(r"[^\W\d][\w$.-]*")


def comments(text: str) -> str:
    """Replace each comment by a space: from // to a line break, or from /* to */. A comment without its end stays."""
    return join_tokens(Token(SPACE, " ") if _is_closed_comment(token) else token for token in tokenise(text))


def smart_quotes(text: str) -> str:
    """Replace typographic quotes around strings by straight double quotes."""
    return join_tokens(_requote_double(token) if token.kind == SMART_QUOTED else token for token in tokenise(text))


def single_quotes(text: str) -> str:
    """Replace single quotes around strings by double quotes."""
    return join_tokens(_requote_double(token) if token.kind == SINGLE_QUOTED else token for token in tokenise(text))


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
    r"""Replace Python's escapes \x, \U and \' by their characters; escape the backslash of other invalid ones."""
    return _map_strings(text, lambda content: _ESCAPE.sub(_replace_escape, content))


def unquoted_keys(text: str) -> str:
    """Add double quotes to keys without quotes, such as in `{city: "Rome"}`."""
    return join_tokens(
        Token(DOUBLE_QUOTED, json.dumps(token.text, ensure_ascii=False))
        if _is_unquoted_key(text_before, token, text_after)
        else token
        for text_before, token, text_after in iterate_with_neighbours(tokenise(text))
    )


def trailing_commas(text: str) -> str:
    """Remove a comma before a closing bracket."""
    return join_tokens(
        token
        for _, token, text_after in iterate_with_neighbours(tokenise(text))
        if not (token.text == "," and text_after and text_after in "}]")
    )


def missing_closers(text: str) -> str:
    """Add missing closing brackets.

    If brackets are missing at the end, the text must end with a complete value. After anything else, such as a number,
    a comma or a key, more text may have followed, so the text is returned unchanged.
    """
    tokens = tokenise(text)
    balanced_text, missing_brackets = _balance_brackets(tokens)
    if missing_brackets and not _is_last_value_complete(tokens):
        return text
    return balanced_text + missing_brackets


def cut_value(text: str) -> str:
    """Close a text that ends inside a value, to show the part that arrived; the call is never executed."""
    tokens = [token for token in tokenise(text) if is_significant(token)]
    if tokens and tokens[-1].text == "\\":
        tokens.pop()
    if tokens and not tokens[-1].is_closed:
        tokens[-1] = Token(DOUBLE_QUOTED, _requote_double(tokens[-1]).text + '"')
    if tokens and tokens[-1].text == ",":
        tokens.pop()
    balanced_text, missing_brackets = _balance_brackets([*tokens, *_build_missing_pair_end(tokens)])
    return balanced_text + missing_brackets


def _is_closed_comment(token: Token) -> bool:
    return token.kind == COMMENT and token.is_closed


def _requote_double(token: Token) -> Token:
    """Return a string token in double quotes, without the closing quote if the token has none."""
    content = _QUOTE_OR_ESCAPE.sub(_replace_quote_or_escape, token.content)
    return Token(DOUBLE_QUOTED, f'"{content}"' if token.is_closed else f'"{content}')


def _replace_quote_or_escape(match: re.Match[str]) -> str:
    """Return the match as it is written between double quotes.

    A double quote is escaped; an escaped quote of another kind loses its backslash.
    """
    text = match.group()
    if text == '"':
        return '\\"'
    return text[1] if text[1] in "'“”‘’" else text


def _map_strings(text: str, change_content: Callable[[str], str]) -> str:
    """Return the text with the inside of its double-quoted strings changed."""
    return join_tokens(
        _change_content(token, change_content) if token.kind == DOUBLE_QUOTED else token for token in tokenise(text)
    )


def _change_content(token: Token, change_content: Callable[[str], str]) -> Token:
    content = change_content(token.content)
    return Token(DOUBLE_QUOTED, f'"{content}"' if token.is_closed else f'"{content}')


def _replace_escape(match: re.Match[str]) -> str:
    """Return the JSON text of an escape.

    An escape that neither JSON nor Python knows becomes an escaped backslash and its text.
    """
    escape = match.group(1)
    if escape in '"\\/bfnrt' or (len(escape) == 5 and escape[0] == "u"):
        return match.group()
    if escape == "'":
        return "'"
    if len(escape) > 1:
        return json.dumps(chr(int(escape[1:], 16)))[1:-1]
    return "\\\\" + escape


def _is_unquoted_key(text_before: str, token: Token, text_after: str) -> bool:
    return token.kind == WORD and text_after == ":" and text_before in ("{", ",") and bool(_KEY.fullmatch(token.text))


def _balance_brackets(tokens: Sequence[Token]) -> tuple[str, str]:
    """Join the tokens, and add a closing bracket where exactly one is missing, such as the `]` in `{"a": [1}`.

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
    """Return whether the text ends with a complete value.

    Complete are a closing bracket, true, false, null, and a string in double quotes unless it is a key. A number does
    not count, since further digits may have followed.
    """
    last_token = next((token for token in reversed(tokens) if is_significant(token)), None)
    if last_token is None or last_token.text in _JSON_WORDS or last_token.text in ("}", "]"):
        return last_token is not None
    return last_token.kind == DOUBLE_QUOTED and last_token.is_closed and not _build_missing_pair_end(tokens)


def _build_missing_pair_end(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens that complete the last member.

    After a key they are a colon and a null, after a colon a null; otherwise there are none.
    """
    significant_tokens = [token for token in tokens if is_significant(token)]
    colon_and_null = [Token(PUNCTUATION, ":"), Token(WORD, "null")]
    if not significant_tokens:
        return []
    if significant_tokens[-1].text == ":":
        return colon_and_null[1:]
    is_in_object = _balance_brackets(significant_tokens)[1].startswith("}")
    is_key = significant_tokens[-1].kind == DOUBLE_QUOTED and is_in_object and significant_tokens[-2].text in ("{", ",")
    return colon_and_null if is_key else []
