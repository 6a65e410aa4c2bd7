"""Readers of calls with tags around keys and values."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from xml.sax.saxutils import unescape

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats.call_extent import find_value_end
from toolbench.engine.formats.coercion import (
    convert_items,
    convert_value,
    group_by_key,
    is_list_allowed,
    list_items,
    parse_as_types,
)
from toolbench.engine.formats.json_calls import clean_name, parse_object
from toolbench.engine.formats.literals import read_value
from toolbench.engine.formats.specification import BlockReader, FoundCall, ParsedBlock
from toolbench.engine.formats.types import ToolSchemas

UNREADABLE_BLOCK, TRUNCATED_BLOCK = ParsedBlock(problem="call_unreadable"), ParsedBlock(problem="call_cut")
_WRAPPER_KEYS = ("arguments", "input")  # parameters in which models wrap all arguments
ConvertValue: TypeAlias = Callable[[str, str, str, ToolSchemas], Any]


@dataclass(frozen=True, slots=True)
class TaggedReader:
    """A reader of a call with a tag for each argument.

    A block without tags may hold the arguments as JSON.

    Attributes:
        name: matches at the beginning of the block. Group `name` is the tool's name, an optional group `id` the call's
            id.
        key: matches where a value begins. Group `key` is the argument's key. An optional group `kind` is the JSON type
            of the value, which overrides the schema. An optional group `opened` is None if the tag that opens the value
            is missing.
        value_end: the text that ends a value.
        end: a text that may end the call.
        lines: whether one line break is removed from both ends of a value.
        escaped: whether markup in a value is written as entities.
        kinds: JSON types by the words of group `kind`.
        attribute: decodes the text of a name or key.
        plain: decodes the text of a value without `kind`.
    """

    name: re.Pattern[str]
    key: re.Pattern[str]
    value_end: str
    end: str = ""
    lines: bool = False
    escaped: bool = False
    kinds: Mapping[str, str] = field(default_factory=dict)
    attribute: Callable[[str], str] = str
    plain: Callable[[str], str] = str

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
        """Read the call in the text of a block."""
        heading = self.name.match(body)
        name = self.attribute(clean_name(heading["name"])) if heading else ""
        if heading is None or not name:
            return TRUNCATED_BLOCK if cut else UNREADABLE_BLOCK
        rest = body[heading.end() :]
        if rest.lstrip().startswith("{"):
            return _read_json_arguments(name, rest.lstrip(), self.value_end, cut=cut)
        if cut:
            return TRUNCATED_BLOCK
        notes: set[str] = set()
        arguments = self._read_arguments(name, rest, known, notes)
        if arguments is None:
            return UNREADABLE_BLOCK
        if unwrapped := _unwrap_arguments(arguments, name, known):
            return ParsedBlock((FoundCall(name, unwrapped),), notes=("arguments_wrapped",))
        return ParsedBlock(
            (FoundCall(name, arguments, heading.groupdict().get("id") or ""),), notes=tuple(sorted(notes))
        )

    def _read_arguments(self, tool: str, text: str, known: ToolSchemas, notes: set[str]) -> dict[str, Any] | None:
        """Return the arguments by key, or None if they cannot be read.

        They cannot be read if there is text before the first key, or if a lost tag hides where a value begins or ends.
        """
        starts = self._find_value_starts(tool, text, known)
        if any(map(_is_tag_missing, starts)):
            notes.add("tag_missing")
        leading = text[: starts[0].start()] if starts else text.replace(self.end, "") if self.end else text
        if leading.strip() or not starts:
            return None if leading.strip() else {}
        ends = [*(start.start() for start in starts[1:]), len(text)]
        if any(self._is_doubtful(start, text[start.end() : end]) for start, end in zip(starts, ends, strict=True)):
            return None
        return group_by_key(
            (
                (self.attribute(start["key"].strip()), (start, text[start.end() : end]))
                for start, end in zip(starts, ends, strict=True)
            ),
            lambda key, pair: self._convert(tool, *pair, known, convert_value),
            lambda key, pair: list_items(self._convert(tool, *pair, known, convert_items)),
            lambda key: is_list_allowed(tool, key, known),
            notes,
        )

    def _is_doubtful(self, start: re.Match[str], value: str) -> bool:
        """Return whether a lost tag hides where a value begins or ends.

        This is so if the value contains a part of its end tag, or if there are blanks where a tag should be.
        """
        if self.value_end in value:
            return _get_trailing_blanks(start[0]) not in ("", "\n") or self._has_stray_end(value)
        value_text = self._remove_call_end(value)
        has_tag_part = any(token in value_text for token in _TOKEN.findall(self.value_end))
        return (
            has_tag_part or _get_trailing_blanks(start[0]) not in ("", "\n") or _get_trailing_blanks(value_text) != ""
        )

    def _remove_call_end(self, value: str) -> str:
        """Return a value without the end of the call and one line break before it.

        With `lines`, the line break that belongs to the value is removed, too.
        """
        end = value.rfind(self.end) if self.end else -1
        value = (value[:end] if end >= 0 else value).removesuffix("\n")
        return value.removesuffix("\n") if self.lines else value

    def _has_stray_end(self, value: str) -> bool:
        """Return whether a tag inside a value is lost.

        This is so if the value contains an end tag without a start tag, or a start tag without an end tag. With
        `lines`, an end tag within a line is text.
        """
        text_before_end = value[: max(value.rfind(self.value_end), 0)]
        end = f"\n{self.value_end}\n" if self.lines else self.value_end
        starts = list(self.key.finditer(text_before_end))
        opened_count = sum(not _is_tag_missing(found) for found in starts)
        return text_before_end.count(end) > len(starts) or opened_count > text_before_end.count(self.value_end)

    def _find_value_starts(self, tool: str, text: str, known: ToolSchemas) -> list[re.Match[str]]:
        """Return the matches of `key` at which values begin, in order.

        Within a value that is not closed yet, only the key of a parameter of the tool begins a new value.
        """
        schema = known.schemas.get(tool, {}).get("properties")
        starts: list[re.Match[str]] = []
        end = -1  # index of the end tag of the last value
        for start in self.key.finditer(text):
            is_parameter = not isinstance(schema, dict) or self.attribute(start["key"].strip()) in schema
            are_both_missing = bool(starts) and _is_tag_missing(start) and _is_tag_missing(starts[-1])
            if not starts or end < start.start() or (is_parameter and (not _is_tag_missing(start) or are_both_missing)):
                starts.append(start)
                if end < start.end():
                    end = text.find(self.value_end, start.end())
                    end = end if end >= 0 else len(text)
        return starts

    def _convert(self, tool: str, start: re.Match[str], text: str, known: ToolSchemas, convert: ConvertValue) -> Any:
        end = text.rfind(self.value_end)
        value = text[:end] if end >= 0 else self._remove_call_end(text)
        if self.lines:
            value = value.removeprefix("\n")
            value = value.removesuffix("\n") if end >= 0 else value
        if self.escaped:
            value = unescape(value, {"&quot;": '"'})
        kind = start.groupdict().get("kind")
        kind = self.kinds.get(kind, kind) if kind else ""
        if kind:
            return value if kind == "string" else parse_as_types(value, kind.split("|"))
        return convert(self.plain(value), tool, self.attribute(start["key"].strip()), known)


_TOKEN = re.compile(r"<[^<>]+>")


def _get_trailing_blanks(text: str) -> str:
    return text[len(text.rstrip()) :]


def _is_tag_missing(start: re.Match[str]) -> bool:
    """Return whether the tag that opens the value of a key is missing, if the format can detect it."""
    return start.groupdict().get("opened", "") is None


@dataclass(frozen=True, slots=True)
class FirstMatchReader:
    """A reader that tries several readers: the first result with a call counts, else the first result."""

    readers: Sequence[BlockReader]

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
        """Read the calls in the text of a block."""
        readings = [reader(body, known, cut=cut) for reader in self.readers]
        return next((reading for reading in readings if reading.calls), readings[0])


@dataclass(frozen=True, slots=True)
class AttributeReader:
    """A reader of a name followed by `key=value` pairs; values with blanks are in quotes."""

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
        """Read the call in the text of a block."""
        name, _, rest = body.strip().partition(" ")
        if cut or not _NAME.fullmatch(name) or not _PAIRS.fullmatch(rest):
            return TRUNCATED_BLOCK if cut else UNREADABLE_BLOCK
        notes = {"attributes"}
        pairs = ((found["key"], _strip_quotes(found["value"])) for found in _PAIR.finditer(rest))
        arguments = convert_by_key(pairs, name, known, notes)
        return ParsedBlock((FoundCall(name, arguments),), notes=tuple(sorted(notes)))


_NAME = re.compile(r"[\w.:/-]+")
_PAIR = re.compile(r"""\s*(?P<key>[\w.-]+)=(?P<value>"[^"]*"|'[^']*'|[^\s"']+)(?=\s|$)""")
_PAIRS = re.compile(rf"(?:{_PAIR.pattern.replace('?P<key>', '?:').replace('?P<value>', '?:')})+\s*")


def convert_by_key(pairs: Iterable[tuple[str, str]], tool: str, known: ToolSchemas, notes: set[str]) -> dict[str, Any]:
    """Return the values of untyped texts by key; repeated keys are treated as in `group_by_key`."""
    return group_by_key(
        pairs,
        lambda key, text: convert_value(text, tool, key, known),
        lambda key, text: convert_items(text, tool, key, known),
        lambda key: is_list_allowed(tool, key, known),
        notes,
    )


def _strip_quotes(value: str) -> str:
    return value[1:-1] if value[0] in "\"'" else value


def _read_json_arguments(name: str, text: str, value_end: str, *, cut: bool) -> ParsedBlock:
    """Read arguments that are written as JSON.

    If `value_end`, the end tag of a value, follows the object, the start tag of a value is lost and the call is
    unreadable.
    """
    end = find_value_end(text, 0)
    if end is not None and value_end and text.find(value_end, end) >= 0:
        return UNREADABLE_BLOCK
    if end is None:
        return TRUNCATED_BLOCK if cut else UNREADABLE_BLOCK
    try:
        arguments = parse_object(read_value(text[:end]))
    except InvalidJsonError:
        return UNREADABLE_BLOCK
    return UNREADABLE_BLOCK if arguments is None else ParsedBlock((FoundCall(name, arguments),))


def _unwrap_arguments(arguments: dict[str, Any], tool: str, known: ToolSchemas) -> dict[str, Any] | None:
    """Return the arguments in the only parameter if it is a wrapper that the tool does not have, else None."""
    key = next(iter(arguments), "")
    properties = known.schemas.get(tool, {}).get("properties")
    if len(arguments) != 1 or key not in _WRAPPER_KEYS or not isinstance(properties, dict) or key in properties:
        return None
    return parse_object(arguments[key])
