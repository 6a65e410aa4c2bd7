"""Readers of calls that are written as tagged keys and values."""

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
from toolbench.engine.formats.json_calls import as_object, clean_name
from toolbench.engine.formats.literals import read_value
from toolbench.engine.formats.specification import BlockReader, FoundCall, ParsedBlock
from toolbench.engine.formats.types import ToolSchemas

UNREADABLE_BLOCK, TRUNCATED_BLOCK = ParsedBlock(problem="call_unreadable"), ParsedBlock(problem="call_cut")
_WRAPPER_KEYS = ("arguments", "input")  # single parameters in which models wrap all others
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
        attribute: decodes a name or key.
        plain: decodes a value without `kind`.
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
        arguments = self._arguments(name, rest, known, notes)
        if arguments is None:
            return UNREADABLE_BLOCK
        if unwrapped := _unwrap_arguments(arguments, name, known):
            return ParsedBlock((FoundCall(name, unwrapped),), notes=("arguments_wrapped",))
        return ParsedBlock(
            (FoundCall(name, arguments, heading.groupdict().get("id") or ""),), notes=tuple(sorted(notes))
        )

    def _arguments(self, tool: str, text: str, known: ToolSchemas, notes: set[str]) -> dict[str, Any] | None:
        """Return the arguments by key, or None if they cannot be read.

        They cannot be read if there is text before the first key, or if a lost tag hides where a value begins or ends.
        """
        opened = self._opened(tool, text, known)
        if any(map(_is_tag_missing, opened)):
            notes.add("tag_missing")
        leading = text[: opened[0].start()] if opened else text.replace(self.end, "") if self.end else text
        if leading.strip() or not opened:
            return None if leading.strip() else {}
        ends = [*(found.start() for found in opened[1:]), len(text)]
        if any(self._is_doubtful(found, text[found.end() : end]) for found, end in zip(opened, ends, strict=True)):
            return None
        return group_by_key(
            (
                (self.attribute(found["key"].strip()), (found, text[found.end() : end]))
                for found, end in zip(opened, ends, strict=True)
            ),
            lambda key, pair: self._value(tool, *pair, known, convert_value),
            lambda key, pair: list_items(self._value(tool, *pair, known, convert_items)),
            lambda key: is_list_allowed(tool, key, known),
            notes,
        )

    def _is_doubtful(self, found: re.Match[str], value: str) -> bool:
        """Return whether a lost tag hides where a value begins or ends.

        This is so if the value holds a part of its end, or if there are blanks in the place of the tag.
        """
        if self.value_end in value:
            return _blank_end(found[0]) not in ("", "\n") or self._has_stray_end(value)
        written = self._unclosed(value)
        lost = any(token in written for token in _TOKEN.findall(self.value_end))
        return lost or _blank_end(found[0]) not in ("", "\n") or _blank_end(written) != ""

    def _unclosed(self, value: str) -> str:
        """Return a value without the end of the call and one line break before it.

        With `lines`, the line break that belongs to the value is removed, too.
        """
        last = value.rfind(self.end) if self.end else -1
        value = (value[:last] if last >= 0 else value).removesuffix("\n")
        return value.removesuffix("\n") if self.lines else value

    def _has_stray_end(self, value: str) -> bool:
        """Return whether a tag inside a value is lost.

        This is so if the value ends twice and no other value begins between the ends, or if another value begins in it
        and does not end. With `lines`, an end in the middle of a line is text.
        """
        before = value[: max(value.rfind(self.value_end), 0)]
        end = f"\n{self.value_end}\n" if self.lines else self.value_end
        keys = list(self.key.finditer(before))
        opened = sum(not _is_tag_missing(found) for found in keys)
        return before.count(end) > len(keys) or opened > before.count(self.value_end)

    def _opened(self, tool: str, text: str, known: ToolSchemas) -> list[re.Match[str]]:
        """Return the places where values begin.

        In a value that is not closed, only a parameter of the tool begins a new value.
        """
        schema = known.schemas.get(tool, {}).get("properties")
        opened: list[re.Match[str]] = []
        closed = -1  # the first end of a value behind the last beginning
        for found in self.key.finditer(text):
            known_key = not isinstance(schema, dict) or self.attribute(found["key"].strip()) in schema
            lost_both = bool(opened) and _is_tag_missing(found) and _is_tag_missing(opened[-1])
            if not opened or closed < found.start() or (known_key and (not _is_tag_missing(found) or lost_both)):
                opened.append(found)
                if closed < found.end():
                    closed = text.find(self.value_end, found.end())
                    closed = closed if closed >= 0 else len(text)
        return opened

    def _value(self, tool: str, found: re.Match[str], text: str, known: ToolSchemas, typed: ConvertValue) -> Any:
        last = text.rfind(self.value_end)
        value = text[:last] if last >= 0 else self._unclosed(text)
        if self.lines:
            value = value.removeprefix("\n")
            value = value.removesuffix("\n") if last >= 0 else value
        if self.escaped:
            value = unescape(value, {"&quot;": '"'})
        kind = found.groupdict().get("kind")
        kind = self.kinds.get(kind, kind) if kind else ""
        if kind:
            return value if kind == "string" else parse_as_types(value, kind.split("|"))
        return typed(self.plain(value), tool, self.attribute(found["key"].strip()), known)


_TOKEN = re.compile(r"<[^<>]+>")


def _blank_end(text: str) -> str:
    return text[len(text.rstrip()) :]


def _is_tag_missing(found: re.Match[str]) -> bool:
    """Return whether the tag that opens the value of a key is missing, if the format can detect it."""
    return found.groupdict().get("opened", "") is None


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
    """A reader of a name and `key=value` pairs behind it; values with blanks are in quotes."""

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


def convert_by_key(found: Iterable[tuple[str, str]], tool: str, known: ToolSchemas, notes: set[str]) -> dict[str, Any]:
    """Return the values of untyped texts by key; repeated keys are treated as in `group_by_key`."""
    return group_by_key(
        found,
        lambda key, text: convert_value(text, tool, key, known),
        lambda key, text: convert_items(text, tool, key, known),
        lambda key: is_list_allowed(tool, key, known),
        notes,
    )


def _strip_quotes(value: str) -> str:
    return value[1:-1] if value[0] in "\"'" else value


def _read_json_arguments(name: str, text: str, stray: str, *, cut: bool) -> ParsedBlock:
    """Read arguments that are written as JSON.

    If `stray` follows the object, it is a value whose opening tag is lost, so the call is unreadable.
    """
    end = find_value_end(text, 0)
    if end is not None and stray and text.find(stray, end) >= 0:
        return UNREADABLE_BLOCK
    if end is None:
        return TRUNCATED_BLOCK if cut else UNREADABLE_BLOCK
    try:
        arguments = as_object(read_value(text[:end]))
    except InvalidJsonError:
        return UNREADABLE_BLOCK
    return UNREADABLE_BLOCK if arguments is None else ParsedBlock((FoundCall(name, arguments),))


def _unwrap_arguments(arguments: dict[str, Any], tool: str, known: ToolSchemas) -> dict[str, Any] | None:
    """Return all arguments if they are JSON in one parameter that the tool does not have, else None."""
    key = next(iter(arguments), "")
    properties = known.schemas.get(tool, {}).get("properties")
    if len(arguments) != 1 or key not in _WRAPPER_KEYS or not isinstance(properties, dict) or key in properties:
        return None
    return as_object(arguments[key])
