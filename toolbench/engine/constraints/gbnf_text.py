"""Literals, character classes, repetitions and JSON strings in GBNF, the grammar language of llama.cpp."""

import json
import re
import string
from collections.abc import Callable, Iterable

from toolbench.engine.constraints.regex import Ranges, complement_ranges, join_ranges

MAX_REPEAT = 1024  # largest count in braces; llama.cpp refuses or ignores counts of 2000 and more

_LITERAL_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ASCII = range(128)
_HEX = frozenset(string.hexdigits)
_HEX_ESCAPE_END = re.compile(r"\\x..$")
_CONTROL_CHARACTERS = ((0, 31),)
_QUOTE_AND_BACKSLASH = ((34, 34), (92, 92))
# The character after the backslash in JSON's short escapes, by the code point that the escape stands for.
_JSON_ESCAPES = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 34: '"', 92: "\\"}

DefineRule = Callable[[str, str], str]
"""The type of `GbnfGrammar.define`: takes the beginning of a name and a rule's body, and returns the rule's name."""


def render_literal(text: str) -> str:
    """Return a text as a GBNF literal. The text may contain no control characters but LF, CR and tabs."""
    return '"' + "".join(_LITERAL_ESCAPES.get(char, char) for char in text) + '"'


def render_json_literal(value: object) -> str:
    """Return a GBNF literal of a value's JSON text, which has no white space between tokens."""
    return render_literal(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def render_json_class(ranges: Ranges) -> str:
    """Return an expression for one character in these ranges, as JSON writes it in a string.

    Quotation marks, backslashes and characters with a short escape, such as a line break, are written as JSON escapes.
    Other characters below U+0020 are left out. The result is "" if no character remains.
    """
    unescaped = complement_ranges(join_ranges(complement_ranges(ranges), _CONTROL_CHARACTERS, _QUOTE_AND_BACKSLASH))
    options = [render_char_class(unescaped)] if unescaped else []
    for code, escape in _JSON_ESCAPES.items():
        if any(low <= code <= high for low, high in ranges):
            options.append(render_literal(f"\\{escape}"))
    return options[0] if len(options) == 1 else f"({' | '.join(options)})" if options else ""


def render_char_class(ranges: Ranges) -> str:
    """Return a character class: `[^…]` if the ranges exclude ASCII characters and no others, else `[…]`.

    XGrammar accepts only ASCII characters in `[^…]`. Excluded surrogates are ignored, since no text contains them.
    """
    excluded_ranges = [
        character_range
        for character_range in complement_ranges(ranges)
        if character_range[0] not in range(0xD800, 0xE000)
    ]
    return (
        f"[^{_render_ranges(excluded_ranges)}]"
        if excluded_ranges and excluded_ranges[-1][1] in _ASCII
        else f"[{_render_ranges(ranges)}]"
    )


def _render_ranges(ranges: Iterable[tuple[int, int]]) -> str:
    r"""Return the ranges as the text between the brackets of a character class.

    XGrammar reads any number of hexadecimal digits after `\x`, so a digit that follows is escaped too.
    """
    parts: list[str] = []
    for low, high in ranges:
        first_character = _render_code_point(low)
        if parts and first_character in _HEX and _HEX_ESCAPE_END.search(parts[-1]):
            first_character = f"\\x{low:02X}"
        parts.append(first_character if low == high else f"{first_character}-{_render_code_point(high)}")
    return "".join(parts)


def _render_code_point(code: int) -> str:
    is_plain = chr(code).isalnum() or (code >= 0xA0 and chr(code).isprintable())
    return chr(code) if is_plain or code > 0xFF else f"\\x{code:02X}"


def render_repeat(symbol: str, min_count: int, max_count: int, define: DefineRule) -> str:
    """Return an expression for `min_count` to `max_count` repetitions of `symbol`.

    Counts above MAX_REPEAT are composed of smaller ones, in rules that `define` adds.
    """
    if max_count <= MAX_REPEAT:
        return _render_counted(symbol, min_count, max_count)
    group = define("many", _render_counted(symbol, MAX_REPEAT, MAX_REPEAT))
    group_count, remainder = divmod(min_count, MAX_REPEAT)
    levels, last_count = divmod(max_count - min_count, MAX_REPEAT)
    optional_part = define("some", _render_counted(symbol, 0, last_count)) if last_count else ""
    for _ in range(levels):  # each level allows MAX_REPEAT more repetitions
        optional_part = define("some", f"{group} {optional_part} | {symbol}{{0,{MAX_REPEAT - 1}}}")
    return " ".join(
        [*[group] * group_count, *([_render_counted(symbol, remainder, remainder)] if remainder else []), optional_part]
    )


def _render_counted(symbol: str, min_count: int, max_count: int) -> str:
    if min_count == max_count:
        return symbol if max_count == 1 else f"{symbol}{{{max_count}}}" if max_count else '""'
    return f"{symbol}?" if (min_count, max_count) == (0, 1) else f"{symbol}{{{min_count},{max_count}}}"


def render_other_name(names: Iterable[str], define: DefineRule) -> str:
    """Return a symbol for a JSON string that differs from all `names`, without its quotation marks.

    The string has no escapes. At most 64 characters follow the first one that distinguishes it from all names.
    """
    return define("other", _build_other_name(sorted(set(names)), 0, define))


def _build_other_name(names: list[str], length: int, define: DefineRule) -> str:
    """Return the body of a rule for a JSON string after its first `length` characters.

    All `names` begin with the same `length` characters, and the whole string must differ from each of them.
    """
    next_characters = sorted({name[length] for name in names if len(name) > length})
    excluded = join_ranges(
        _CONTROL_CHARACTERS, _QUOTE_AND_BACKSLASH, tuple((ord(char), ord(char)) for char in next_characters)
    )
    options = [f"{render_char_class(complement_ranges(excluded))} {_define_name_end(define)}"]
    for char in next_characters:
        if ord(char) < 32 or char in '"\\':
            continue
        longer_names = define(
            "other",
            _build_other_name([name for name in names if name[length : length + 1] == char], length + 1, define),
        )
        options.append(f"{render_literal(char)} {longer_names}")
    if all(len(name) != length for name in names):
        options.append('""')
    return " | ".join(options)


def _define_name_end(define: DefineRule) -> str:
    return define(
        "rest",
        f"{render_char_class(complement_ranges(join_ranges(_CONTROL_CHARACTERS, _QUOTE_AND_BACKSLASH)))}{{0,64}}",
    )
