"""Literals, classes and repetitions of GBNF. JSON text is written as JSON does, escapes included."""

import json
import re
import string
from collections.abc import Callable, Iterable

from toolbench.engine.constraints.regex import Ranges, complement_ranges, join_ranges

MAX_REPEAT = 1024  # llama.cpp refuses or ignores counts of 2000 and more

_IN_LITERAL = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ASCII = range(128)
_HEX = frozenset(string.hexdigits)
_ESCAPED = re.compile(r"\\x..$")
_CONTROL = ((0, 31),)
_QUOTED = ((34, 34), (92, 92))
_ESCAPES = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 34: '"', 92: "\\"}

DefineRule = Callable[[str, str], str]


def render_literal(text: str) -> str:
    """Return a text as a literal; it must have no control characters but line ends and tabs."""
    return '"' + "".join(_IN_LITERAL.get(char, char) for char in text) + '"'


def render_json_literal(value: object) -> str:
    """Return a literal for the compact text of a JSON value."""
    return render_literal(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def render_json_class(ranges: Ranges) -> str:
    """Return a class for one character of a JSON string in these ranges, with its escape where JSON requires it."""
    plain = complement_ranges(join_ranges(complement_ranges(ranges), _CONTROL, _QUOTED))
    options = [render_char_class(plain)] if plain else []
    for code, escape in _ESCAPES.items():
        if any(low <= code <= high for low, high in ranges):
            options.append(render_literal(f"\\{escape}"))
    return options[0] if len(options) == 1 else f"({' | '.join(options)})" if options else ""


def render_char_class(ranges: Ranges) -> str:
    """Return `[a-z]`, or `[^…]` if only ASCII characters are excluded; XGrammar knows no others there."""
    rest = [part for part in complement_ranges(ranges) if part[0] not in range(0xD800, 0xE000)]
    return f"[^{_render_ranges(rest)}]" if rest and rest[-1][1] in _ASCII else f"[{_render_ranges(ranges)}]"


def _render_ranges(ranges: Iterable[tuple[int, int]]) -> str:
    r"""Return the ranges as text.

    XGrammar reads any number of hexadecimal digits after `\x`, so a digit that follows is escaped too.
    """
    parts: list[str] = []
    for low, high in ranges:
        first = _render_char(low)
        if parts and first in _HEX and _ESCAPED.search(parts[-1]):
            first = f"\\x{low:02X}"
        parts.append(first if low == high else f"{first}-{_render_char(high)}")
    return "".join(parts)


def _render_char(code: int) -> str:
    plain = chr(code).isalnum() or (code >= 0xA0 and chr(code).isprintable())
    return chr(code) if plain or code > 0xFF else f"\\x{code:02X}"


def render_repeat(symbol: str, least: int, most: int, define: DefineRule) -> str:
    """Return `symbol` repeated at least and at most so often.

    Counts beyond the limit of llama.cpp are composed of smaller ones; `define(hint, body)` makes a rule and returns its
    name.
    """
    if most <= MAX_REPEAT:
        return _render_counted(symbol, least, most)
    chunk = define("many", _render_counted(symbol, MAX_REPEAT, MAX_REPEAT))
    whole, rest = divmod(least, MAX_REPEAT)
    levels, last = divmod(most - least, MAX_REPEAT)
    tail = define("some", _render_counted(symbol, 0, last)) if last else ""
    for _ in range(levels):
        tail = define("some", f"{chunk} {tail} | {symbol}{{0,{MAX_REPEAT - 1}}}")
    return " ".join([*[chunk] * whole, *([_render_counted(symbol, rest, rest)] if rest else []), tail])


def _render_counted(symbol: str, least: int, most: int) -> str:
    if least == most:
        return symbol if most == 1 else f"{symbol}{{{most}}}" if most else '""'
    return f"{symbol}?" if (least, most) == (0, 1) else f"{symbol}{{{least},{most}}}"


def render_other_name(names: Iterable[str], define: DefineRule) -> str:
    """Return a symbol for the inside of a JSON string of up to 64 plain characters that is none of these names."""
    return define("other", _list_unlike(sorted(set(names)), 0, define))


def _list_unlike(names: list[str], at: int, define: DefineRule) -> str:
    """Return alternatives after `at` characters that all names share; the closing quote is not included."""
    heads = sorted({name[at] for name in names if len(name) > at})
    barred = join_ranges(_CONTROL, _QUOTED, tuple((ord(char), ord(char)) for char in heads))
    options = [f"{render_char_class(complement_ranges(barred))} {_define_rest(define)}"]
    for char in heads:
        if ord(char) < 32 or char in '"\\':
            continue
        inner = define("other", _list_unlike([name for name in names if name[at : at + 1] == char], at + 1, define))
        options.append(f"{render_literal(char)} {inner}")
    if all(len(name) != at for name in names):
        options.append('""')
    return " | ".join(options)


def _define_rest(define: DefineRule) -> str:
    return define("rest", f"{render_char_class(complement_ranges(join_ranges(_CONTROL, _QUOTED)))}{{0,64}}")
