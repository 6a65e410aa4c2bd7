"""MiniMax M3: a mark stands before each tag, the tag of a value is named after its key, and values nest."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolbench.engine.formats.call_writers import enclosed_result_writer, render_tag_value, tool_lines_writer
from toolbench.engine.formats.coercion import convert_by_schema, find_subschema, get_allowed_types, group_by_key
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.json_calls import clean_name
from toolbench.engine.formats.specification import (
    Block,
    CallLayout,
    FoundCall,
    ParsedBlock,
    PromptLayout,
    RoundTripLimits,
    TextFormat,
)
from toolbench.engine.formats.tagged_calls import TRUNCATED_BLOCK, UNREADABLE_BLOCK
from toolbench.engine.formats.types import TextCall, ToolSchemas
from toolbench.engine.strict_json import write_json

MARK = "]<]minimax[>["
INVOKE, INVOKE_END = f"{MARK}<invoke name=", f"{MARK}</invoke>"
ALL, ALL_END = f"{MARK}<tool_call>", f"{MARK}</tool_call>"
ITEM = "item"
MAX_DEPTH = 64
_NAME = re.compile(r"\s*[\"']?(?P<name>[^\"'>\s]+)[\"']?\s*>")
_TAG = re.compile(rf"{re.escape(MARK)}<(?P<end>/?)(?P<key>[^<>]{{1,256}})>")


@dataclass(slots=True)
class _Element:
    key: str
    pieces: list[str] = field(default_factory=list)
    inside: "list[_Element]" = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text of the element."""
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class NestedTagReader:
    """Parses a name and its values; a list is a tag with one `item` for each of its values."""

    def __call__(self, body: str, known: ToolSchemas, *, cut: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        heading = _NAME.match(body)
        name = clean_name(heading["name"]) if heading else ""
        root = _parse_elements(body[heading.end() :]) if heading and name and not cut else None
        if root is None:
            return TRUNCATED_BLOCK if cut else UNREADABLE_BLOCK
        schema = known.schemas.get(name, {})
        notes: set[str] = set()
        arguments = _ElementConverter(schema, known, notes).by_key(root, schema)
        return ParsedBlock((FoundCall(name, arguments),), notes=tuple(notes))


def _parse_elements(text: str) -> list[_Element] | None:
    """Return the elements at the top; None for a tag without an end, or words beside tags."""
    open_ones, at = [_Element("")], 0
    for tag in _TAG.finditer(text):
        open_ones[-1].pieces.append(text[at : tag.start()])
        at = tag.end()
        if not tag["end"]:
            open_ones.append(_Element(tag["key"].strip()))
            continue
        closed = open_ones.pop()
        if not open_ones or closed.key != tag["key"].strip() or len(open_ones) > MAX_DEPTH:
            return None
        if closed.inside and closed.text.strip():
            return None
        open_ones[-1].inside.append(closed)
    open_ones[0].pieces.append(text[at:])
    return open_ones[0].inside if len(open_ones) == 1 and not open_ones[0].text.strip() else None


@dataclass(frozen=True, slots=True)
class _ElementConverter:
    """Converts elements to the types in the schemas of `root`; `notes` receives codes of what was tolerated."""

    root: Mapping[str, Any]
    known: ToolSchemas
    notes: set[str]

    def by_key(self, elements: Sequence[_Element], schema: object) -> dict[str, Any]:
        """Return an object's values. A tag that is repeated is a list where the schema says so."""
        return group_by_key(
            ((element.key, element) for element in elements),
            lambda key, element: self._value(element, find_subschema(schema, key, self.root)),
            lambda key, element: self._items(element, find_subschema(schema, key, self.root)),
            lambda key: "array" in get_allowed_types(find_subschema(schema, key, self.root), self.root),
            self.notes,
        )

    def _items(self, element: _Element, schema: object) -> list[Any]:
        """Return what one of several tags adds to their list: its own items, or itself."""
        inner = find_subschema(schema, "", self.root)
        if element.inside:
            listed = all(part.key == ITEM for part in element.inside)
            return [self._value(part, inner) for part in (element.inside if listed else [element])]
        value = self._value(element, schema)
        return value if isinstance(value, list) else [self._value(element, inner)]

    def _value(self, element: _Element, schema: object) -> Any:
        kinds = get_allowed_types(schema, self.root)
        if element.inside and ("array" in kinds or (not kinds and all(part.key == ITEM for part in element.inside))):
            inner = find_subschema(schema, "", self.root)
            if all(find_subschema(inner, part.key, self.root) for part in element.inside):
                return [self.by_key(element.inside, inner)]
            return [self._value(part, inner) for part in element.inside]
        if element.inside:
            return self.by_key(element.inside, schema)
        if not element.text.strip() and "string" not in kinds and kinds & {"array", "object"}:
            return [] if "array" in kinds else {}
        return convert_by_schema(element.text, schema, self.root, self.known)


def _render_element(key: str, value: object) -> str:
    if isinstance(value, dict):
        inside = "".join(_render_element(name, part) for name, part in value.items())
    elif isinstance(value, list):
        inside = "".join(_render_element(ITEM, part) for part in value)
    else:
        inside = render_tag_value(value)
    return f"{MARK}<{key}>{inside}{MARK}</{key}>"


def _render_body(call: TextCall) -> str:
    return f'"{call.name}">{"".join(_render_element(key, value) for key, value in call.arguments.items())}'


def _render_call(call: TextCall, place: int) -> str:
    return f"{INVOKE}{_render_body(call)}{INVOKE_END}"


def _is_round_trip_safe(call: TextCall, known: ToolSchemas) -> bool:
    read = NestedTagReader()(_render_body(call), known, cut=False).calls
    return [write_json(call.arguments) for call in read] == [write_json(call.arguments)]


MINIMAX_M3 = TextFormat(
    "minimax_m3",
    (
        Block(INVOKE, NestedTagReader(), (INVOKE_END,), (ALL_END, INVOKE)),
        Block("<tool_call>", NestedTagReader(), starts=(INVOKE,), wrapper=True),
    ),
    CallLayout(_render_call, f"{ALL}\n", "\n", f"\n{ALL_END}"),
    PromptLayout(
        tool_lines_writer(
            "# Tools\n\nThese tools can be called:\n<tools>\n",
            f'\n</tools>\n\nTo call one, write:\n{ALL}\n{INVOKE}"name">{MARK}<key>value{MARK}</key>{INVOKE_END}\n'
            f"{ALL_END}",
            flat=True,
            pair=("<tool>", "</tool>"),
        ),
        enclosed_result_writer("<response>", "</response>"),
    ),
    dropped=(ALL, ALL_END, INVOKE_END, "[e~["),
    reasoning=(("<mm:think>", "</mm:think>"),),
    bare=build_bare_json_blocks,
    holds=RoundTripLimits(r"[^\s<>\"']+", r"[^\s<>/]+", ("minimax[>[",), bare_keys=True, again=_is_round_trip_safe),
)
