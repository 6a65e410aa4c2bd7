"""Regular expressions that every grammar can express.

They have characters, classes, groups, alternatives, repetitions, and anchors at the ends, but no look-around, back
references or word boundaries.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

MAX_CODE_POINT = 0x10FFFF
MAX_REPEATS = 1000
MAX_DEPTH = 20
MAX_PATTERN_LENGTH = 1000  # characters of a pattern
SURROGATES = (0xD800, 0xDFFF)

Ranges = tuple[tuple[int, int], ...]

_DIGITS: Ranges = ((48, 57),)
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_BLANK: Ranges = ((9, 13), (32, 32), (160, 160), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F))
_BLANK = (*_BLANK, (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF))
_LINE_ENDS: Ranges = ((10, 10), (13, 13), (0x2028, 0x2029))
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _BLANK}
_CONTROLS = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11}
_SPECIAL = ".*+?()[]{}|^$"


@dataclass(frozen=True, slots=True)
class CharacterClass:
    """One character of sorted ranges that do not touch."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts one after the other."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of several parts."""

    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """A repeated part. `most` is None for no maximum."""

    node: "Node"
    least: int
    most: int | None


Node = CharacterClass | Sequence | Alternation | Repetition


@dataclass(frozen=True, slots=True)
class Branch:
    """One alternative of a whole pattern; any text may stand on a side without an anchor."""

    node: Node
    from_start: bool
    to_end: bool


class _UnsupportedPatternError(Exception):
    pass


def iterate_classes(node: Node) -> Iterator[CharacterClass]:
    """Yield every class of characters in a part of a pattern."""
    if isinstance(node, CharacterClass):
        yield node
        return
    inner = (node.node,) if isinstance(node, Repetition) else node.parts if isinstance(node, Sequence) else node.options
    for part in inner:
        yield from iterate_classes(part)


@lru_cache(maxsize=512)
def parse_pattern(pattern: str) -> tuple[Branch, ...] | None:
    """Return the alternatives of a pattern; None if a grammar cannot express it."""
    if len(pattern) > MAX_PATTERN_LENGTH:
        return None
    try:
        return _PatternParser(pattern).branches()
    except _UnsupportedPatternError:
        return None


def join_ranges(*groups: Ranges) -> Ranges:
    """Return sorted ranges without overlaps."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(part for group in groups for part in group):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def complement_ranges(ranges: Ranges) -> Ranges:
    """Return the ranges of all other characters."""
    found, at = [], 0
    for low, high in join_ranges(ranges):
        if low > at:
            found.append((at, low - 1))
        at = high + 1
    if at <= MAX_CODE_POINT:
        found.append((at, MAX_CODE_POINT))
    return tuple(found)


class _PatternParser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def branches(self) -> tuple[Branch, ...]:
        found = [self._branch()]
        while self._take("|"):
            found.append(self._branch())
        if self._at < len(self._text):
            raise _UnsupportedPatternError
        return tuple(found)

    def _branch(self) -> Branch:
        start = self._take("^")
        node = self._sequence()
        return Branch(node, start, self._take("$"))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)$":
            parts.append(self._repeated(self._atom()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _take(self, token: str) -> bool:
        if not self._text.startswith(token, self._at):
            return False
        self._at += len(token)
        return True

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise _UnsupportedPatternError
        self._at += 1
        return self._text[self._at - 1]

    def _atom(self) -> Node:
        if self._take("("):
            return self._group()
        if self._take("["):
            return CharacterClass(self._class())
        if self._take("."):
            return CharacterClass(complement_ranges(_LINE_ENDS))
        char = self._next()
        if char == "\\":
            return CharacterClass(self._escaped())
        if char in _SPECIAL:
            raise _UnsupportedPatternError
        return CharacterClass(((ord(char), ord(char)),))

    def _group(self) -> Node:
        if not self._take("?:") and self._text.startswith("?", self._at):
            raise _UnsupportedPatternError
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _UnsupportedPatternError
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        if not self._take(")"):
            raise _UnsupportedPatternError
        self._depth -= 1
        return options[0] if len(options) == 1 else Alternation(tuple(options))

    def _repeated(self, node: Node) -> Node:
        least, most = 1, 1
        counted: int | None = most
        if self._take("*"):
            least, counted = 0, None
        elif self._take("+"):
            least, counted = 1, None
        elif self._take("?"):
            least, counted = 0, 1
        elif self._take("{"):
            least, counted = self._counts()
        else:
            return node
        self._take("?")
        if self._text[self._at : self._at + 1] in ("*", "+", "?", "{") and self._at < len(self._text):
            raise _UnsupportedPatternError
        return Repetition(node, least, counted)

    def _counts(self) -> tuple[int, int | None]:
        least = self._number()
        most: int | None = least
        if self._take(","):
            most = None if self._text.startswith("}", self._at) else self._number()
        if not self._take("}") or least > MAX_REPEATS or (most or 0) > MAX_REPEATS or (most or least) < least:
            raise _UnsupportedPatternError
        return least, most

    def _number(self) -> int:
        start = self._at
        while self._text[self._at : self._at + 1].isdigit() and self._text[self._at].isascii():
            self._at += 1
        if not 0 < self._at - start <= len(str(MAX_REPEATS)):
            raise _UnsupportedPatternError
        return int(self._text[start : self._at])

    def _class(self) -> Ranges:
        negated = self._take("^")
        found: list[Ranges] = []
        while not self._take("]"):
            low = self._member()
            single = len(low) == 1 and low[0][0] == low[0][1]
            if single and self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at):
                self._at += 1
                high = self._member()
                if len(high) != 1 or high[0][0] != high[0][1] or high[0][0] < low[0][0]:
                    raise _UnsupportedPatternError
                low = ((low[0][0], high[0][0]),)
            found.append(low)
        ranges = join_ranges(*found)
        if not ranges:
            raise _UnsupportedPatternError
        return complement_ranges(ranges) if negated else ranges

    def _member(self) -> Ranges:
        char = self._next()
        if char == "\\":
            return self._escaped()
        if char == "[" or self._text.startswith(("&&", "--"), self._at - 1):
            raise _UnsupportedPatternError  # some engines read sets inside sets
        return ((ord(char), ord(char)),)

    def _escaped(self) -> Ranges:
        char = self._next()
        if char.lower() in _CLASSES:
            ranges = _CLASSES[char.lower()]
            return ranges if char.islower() else complement_ranges(ranges)
        if char in _CONTROLS:
            return ((_CONTROLS[char], _CONTROLS[char]),)
        if char in "xu":
            code = self._hex(2 if char == "x" else 4)
            if SURROGATES[0] <= code <= SURROGATES[1]:
                raise _UnsupportedPatternError
            return ((code, code),)
        if char.isalnum() or not char.isascii():
            raise _UnsupportedPatternError
        return ((ord(char), ord(char)),)

    def _hex(self, digits: int) -> int:
        text = self._text[self._at : self._at + digits]
        if len(text) != digits or not all(char in "0123456789abcdefABCDEF" for char in text):
            raise _UnsupportedPatternError
        self._at += digits
        return int(text, 16)
