"""Parser for the regular expressions that grammars can express.

They consist of characters, classes, groups, alternatives, repetitions, and anchors at the ends. Look-around, back
references and word boundaries are not supported.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

MAX_CODE_POINT = 0x10FFFF
MAX_REPEATS = 1000  # largest count in braces
MAX_DEPTH = 20  # levels of nested groups
MAX_PATTERN_LENGTH = 1000  # characters of a pattern
SURROGATES = (0xD800, 0xDFFF)

Ranges = tuple[tuple[int, int], ...]  # the first and last code point of each range

_DIGITS: Ranges = ((48, 57),)
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_WHITE_SPACE: Ranges = (
    (9, 13),
    (32, 32),
    (160, 160),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
_LINE_ENDS: Ranges = ((10, 10), (13, 13), (0x2028, 0x2029))
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _WHITE_SPACE}
_CONTROL_ESCAPES = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11}
_SPECIAL_CHARACTERS = ".*+?()[]{}|^$"


@dataclass(frozen=True, slots=True)
class CharacterClass:
    """One character out of ranges of code points, which are sorted and do not touch."""

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
    """A part that is repeated `min_count` to `max_count` times; `max_count` is None for no maximum."""

    node: "Node"
    min_count: int
    max_count: int | None


Node = CharacterClass | Sequence | Alternation | Repetition


@dataclass(frozen=True, slots=True)
class Branch:
    """One alternative at the top of a pattern.

    Attributes:
        is_anchored_at_start: whether it begins with `^`; otherwise any text may come before it.
        is_anchored_at_end: whether it ends with `$`; otherwise any text may come after it.
    """

    node: Node
    is_anchored_at_start: bool
    is_anchored_at_end: bool


class _UnsupportedPatternError(Exception):
    """The pattern is invalid, exceeds a limit, or has a construct that a grammar cannot express."""


def iterate_classes(node: Node) -> Iterator[CharacterClass]:
    """Yield every character class in a part of a pattern, also nested ones."""
    if isinstance(node, CharacterClass):
        yield node
        return
    parts = (node.node,) if isinstance(node, Repetition) else node.parts if isinstance(node, Sequence) else node.options
    for part in parts:
        yield from iterate_classes(part)


@lru_cache(maxsize=512)
def parse_pattern(pattern: str) -> tuple[Branch, ...] | None:
    """Return the alternatives of a pattern; None if it is invalid, exceeds a limit or a grammar cannot express it."""
    if len(pattern) > MAX_PATTERN_LENGTH:
        return None
    try:
        return _PatternParser(pattern).parse()
    except _UnsupportedPatternError:
        return None


def join_ranges(*groups: Ranges) -> Ranges:
    """Return the union of ranges, sorted; ranges that touch or overlap are joined."""
    joined_ranges: list[tuple[int, int]] = []
    for low, high in sorted(character_range for group in groups for character_range in group):
        if joined_ranges and low <= joined_ranges[-1][1] + 1:
            joined_ranges[-1] = (joined_ranges[-1][0], max(joined_ranges[-1][1], high))
        else:
            joined_ranges.append((low, high))
    return tuple(joined_ranges)


def complement_ranges(ranges: Ranges) -> Ranges:
    """Return the ranges of all code points that are in none of `ranges`."""
    complement, next_code = [], 0
    for low, high in join_ranges(ranges):
        if low > next_code:
            complement.append((next_code, low - 1))
        next_code = high + 1
    if next_code <= MAX_CODE_POINT:
        complement.append((next_code, MAX_CODE_POINT))
    return tuple(complement)


class _PatternParser:
    """Parser of one pattern, by recursive descent.

    Its methods may raise _UnsupportedPatternError.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0

    def parse(self) -> tuple[Branch, ...]:
        branches = [self._parse_branch()]
        while self._skip_token("|"):
            branches.append(self._parse_branch())
        if self._position < len(self._text):
            raise _UnsupportedPatternError
        return tuple(branches)

    def _parse_branch(self) -> Branch:
        is_anchored_at_start = self._skip_token("^")
        node = self._parse_sequence()
        return Branch(node, is_anchored_at_start, self._skip_token("$"))

    def _parse_sequence(self) -> Node:
        parts: list[Node] = []
        while self._position < len(self._text) and self._text[self._position] not in "|)$":
            parts.append(self._parse_repetition(self._parse_atom()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _skip_token(self, token: str) -> bool:
        if not self._text.startswith(token, self._position):
            return False
        self._position += len(token)
        return True

    def _read_character(self) -> str:
        if self._position >= len(self._text):
            raise _UnsupportedPatternError
        self._position += 1
        return self._text[self._position - 1]

    def _parse_atom(self) -> Node:
        if self._skip_token("("):
            return self._parse_group()
        if self._skip_token("["):
            return CharacterClass(self._parse_class())
        if self._skip_token("."):
            return CharacterClass(complement_ranges(_LINE_ENDS))
        char = self._read_character()
        if char == "\\":
            return CharacterClass(self._parse_escape())
        if char in _SPECIAL_CHARACTERS:
            raise _UnsupportedPatternError
        return CharacterClass(((ord(char), ord(char)),))

    def _parse_group(self) -> Node:
        if not self._skip_token("?:") and self._text.startswith("?", self._position):
            raise _UnsupportedPatternError
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _UnsupportedPatternError
        options = [self._parse_sequence()]
        while self._skip_token("|"):
            options.append(self._parse_sequence())
        if not self._skip_token(")"):
            raise _UnsupportedPatternError
        self._depth -= 1
        return options[0] if len(options) == 1 else Alternation(tuple(options))

    def _parse_repetition(self, node: Node) -> Node:
        """Parse the repetition sign after `node`, if there is one."""
        min_count = 1
        max_count: int | None = 1
        if self._skip_token("*"):
            min_count, max_count = 0, None
        elif self._skip_token("+"):
            min_count, max_count = 1, None
        elif self._skip_token("?"):
            min_count, max_count = 0, 1
        elif self._skip_token("{"):
            min_count, max_count = self._parse_counts()
        else:
            return node
        self._skip_token("?")  # a lazy repetition matches the same texts
        if self._text[self._position : self._position + 1] in ("*", "+", "?", "{"):
            raise _UnsupportedPatternError
        return Repetition(node, min_count, max_count)

    def _parse_counts(self) -> tuple[int, int | None]:
        min_count = self._parse_number()
        max_count: int | None = min_count
        if self._skip_token(","):
            max_count = None if self._text.startswith("}", self._position) else self._parse_number()
        if (
            not self._skip_token("}")
            or min_count > MAX_REPEATS
            or (max_count or 0) > MAX_REPEATS
            or (max_count or min_count) < min_count
        ):
            raise _UnsupportedPatternError
        return min_count, max_count

    def _parse_number(self) -> int:
        start = self._position
        while self._text[self._position : self._position + 1].isdigit() and self._text[self._position].isascii():
            self._position += 1
        if not 0 < self._position - start <= len(str(MAX_REPEATS)):
            raise _UnsupportedPatternError
        return int(self._text[start : self._position])

    def _parse_class(self) -> Ranges:
        """Parse a character class after its opening bracket."""
        is_negated = self._skip_token("^")
        groups: list[Ranges] = []
        while not self._skip_token("]"):
            first_ranges = self._parse_class_member()
            is_single = len(first_ranges) == 1 and first_ranges[0][0] == first_ranges[0][1]
            if (
                is_single
                and self._text.startswith("-", self._position)
                and not self._text.startswith("-]", self._position)
            ):
                self._position += 1
                last_ranges = self._parse_class_member()
                if (
                    len(last_ranges) != 1
                    or last_ranges[0][0] != last_ranges[0][1]
                    or last_ranges[0][0] < first_ranges[0][0]
                ):
                    raise _UnsupportedPatternError
                first_ranges = ((first_ranges[0][0], last_ranges[0][0]),)
            groups.append(first_ranges)
        ranges = join_ranges(*groups)
        if not ranges:
            raise _UnsupportedPatternError
        return complement_ranges(ranges) if is_negated else ranges

    def _parse_class_member(self) -> Ranges:
        char = self._read_character()
        if char == "\\":
            return self._parse_escape()
        if char == "[" or self._text.startswith(("&&", "--"), self._position - 1):
            raise _UnsupportedPatternError  # a nested set or a set operation in some engines
        return ((ord(char), ord(char)),)

    def _parse_escape(self) -> Ranges:
        """Parse an escape after its backslash."""
        char = self._read_character()
        if char.lower() in _CLASSES:
            ranges = _CLASSES[char.lower()]
            return ranges if char.islower() else complement_ranges(ranges)
        if char in _CONTROL_ESCAPES:
            return ((_CONTROL_ESCAPES[char], _CONTROL_ESCAPES[char]),)
        if char in "xu":
            code = self._parse_hex(2 if char == "x" else 4)
            if SURROGATES[0] <= code <= SURROGATES[1]:
                raise _UnsupportedPatternError
            return ((code, code),)
        if char.isalnum() or not char.isascii():
            raise _UnsupportedPatternError
        return ((ord(char), ord(char)),)

    def _parse_hex(self, digit_count: int) -> int:
        text = self._text[self._position : self._position + digit_count]
        if len(text) != digit_count or not all(char in "0123456789abcdefABCDEF" for char in text):
            raise _UnsupportedPatternError
        self._position += digit_count
        return int(text, 16)
