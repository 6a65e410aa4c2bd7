"""MiniMax M3: nested tags named after the keys, each after the text `]<]minimax[>[`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolbench.engine.formats.call_writers import (
    build_enclosed_result_writer,
    build_tool_lines_writer,
    render_tag_value,
)
from toolbench.engine.formats.coercion import (
    convert_by_schema,
    find_subschema,
    get_allowed_types,
    group_by_key,
    iterate_subschemas,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.json_calls import clean_name
from toolbench.engine.formats.specification import (
    TRUNCATED_BLOCK,
    UNREADABLE_BLOCK,
    Block,
    CallLayout,
    ParsedBlock,
    ParsedCall,
    PromptLayout,
    RoundTripLimits,
    TextFormat,
)
from toolbench.engine.formats.types import TextCall, ToolSchemas
from toolbench.engine.strict_json import write_json

PREFIX = "]<]minimax[>["
INVOKE_START, INVOKE_END = f"{PREFIX}<invoke name=", f"{PREFIX}</invoke>"
CALLS_START, CALLS_END = f"{PREFIX}<tool_call>", f"{PREFIX}</tool_call>"
ITEM = "item"
MAX_DEPTH = 64  # nested tags
_NAME_HEADING = re.compile(r"\s*[\"']?(?P<name>[^\"'>\s]+)[\"']?\s*>")
_TAG = re.compile(rf"{re.escape(PREFIX)}<(?P<end>/?)(?P<key>[^<>]{{1,256}})>")


@dataclass(slots=True)
class _Element:
    """A value tag, with its text and its inner elements.

    Attributes:
        key: the name of the tag; "" for the root, which is no tag.
        text_parts: the parts of the text between inner elements.
        children: the inner elements.
    """

    key: str
    text_parts: list[str] = field(default_factory=list)
    children: "list[_Element]" = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text of the element, without its inner elements."""
        return "".join(self.text_parts)


@dataclass(frozen=True, slots=True)
class NestedTagReader:
    """A reader of a name and nested value tags; a list has a tag `item` for each of its items."""

    def __call__(self, body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        heading = _NAME_HEADING.match(body)
        name = clean_name(heading["name"]) if heading else ""
        root = _parse_elements(body[heading.end() :]) if heading and name and not is_truncated else None
        if root is None:
            return TRUNCATED_BLOCK if is_truncated else UNREADABLE_BLOCK
        schema = offered_tools.schemas.get(name, {})
        deviation_codes: set[str] = set()
        arguments = _ElementConverter(schema, offered_tools, deviation_codes).convert_by_key(root, schema)
        return ParsedBlock((ParsedCall(name, arguments),), deviation_codes=tuple(deviation_codes))


def _parse_elements(text: str) -> list[_Element] | None:
    """Return the outermost elements.

    The result is None if a start tag has no end tag or an end tag has no start tag, if there is text beside a tag, or
    if tags nest deeper than MAX_DEPTH.
    """
    open_elements, index = [_Element("")], 0
    for tag in _TAG.finditer(text):
        open_elements[-1].text_parts.append(text[index : tag.start()])
        index = tag.end()
        if not tag["end"]:
            open_elements.append(_Element(tag["key"].strip()))
            continue
        element = open_elements.pop()
        if not open_elements or element.key != tag["key"].strip() or len(open_elements) > MAX_DEPTH:
            return None
        if element.children and element.text.strip():
            return None
        open_elements[-1].children.append(element)
    open_elements[0].text_parts.append(text[index:])
    return open_elements[0].children if len(open_elements) == 1 and not open_elements[0].text.strip() else None


@dataclass(frozen=True, slots=True)
class _ElementConverter:
    """A converter of elements to JSON values.

    Attributes:
        root: the tool's schema, in which references are resolved.
        offered_tools: the schemas of all tools.
        deviation_codes: receives codes of deviations that were accepted.
    """

    root: Mapping[str, Any]
    offered_tools: ToolSchemas
    deviation_codes: set[str]

    def convert_by_key(self, elements: Sequence[_Element], schema: object) -> dict[str, Any]:
        """Return the values of an object by key. A repeated tag becomes a list if the schema allows a list."""
        return group_by_key(
            ((element.key, element) for element in elements),
            lambda key, element: self._convert_value(element, find_subschema(schema, key, self.root)),
            lambda key, element: self._convert_items(element, find_subschema(schema, key, self.root)),
            lambda key: "array" in get_allowed_types(find_subschema(schema, key, self.root), self.root),
            self.deviation_codes,
        )

    def _convert_items(self, element: _Element, schema: object) -> list[Any]:
        """Return the items that one of several tags of the same key adds to a list: its own items, or its value."""
        item_schema = find_subschema(schema, "", self.root)
        if element.children:
            is_item_list = all(child.key == ITEM for child in element.children)
            return [
                self._convert_value(child, item_schema) for child in (element.children if is_item_list else [element])
            ]
        value = self._convert_value(element, schema)
        return value if isinstance(value, list) else [self._convert_value(element, item_schema)]

    def _convert_value(self, element: _Element, schema: object) -> Any:
        """Return the value of an element as its schema requires.

        A list is also read if its only item, an object, has no tag `item` around its values.
        """
        types = get_allowed_types(schema, self.root)
        if element.children and (
            "array" in types or (not types and all(child.key == ITEM for child in element.children))
        ):
            item_schema = find_subschema(schema, "", self.root)
            if self._is_object_without_item_tag(element, item_schema):
                return [self.convert_by_key(element.children, item_schema)]
            return [self._convert_value(child, item_schema) for child in element.children]
        if element.children:
            return self.convert_by_key(element.children, schema)
        if not element.text.strip() and "string" not in types and types & {"array", "object"}:
            return [] if "array" in types else {}
        return convert_by_schema(element.text, schema, self.root, self.offered_tools)

    def _is_object_without_item_tag(self, element: _Element, item_schema: object) -> bool:
        """Return whether the tags in a list are the values of its only item.

        Tags `item` are values only if the schema lists a property of this name; `additionalProperties` does not count.
        """
        if all(child.key == ITEM for child in element.children):
            listed = [subschema.get("properties") for subschema in iterate_subschemas(item_schema, self.root)]
            return any(isinstance(properties, Mapping) and ITEM in properties for properties in listed)
        return all(find_subschema(item_schema, child.key, self.root) is not None for child in element.children)


def _render_element(key: str, value: object) -> str:
    if isinstance(value, dict):
        content = "".join(_render_element(inner_key, inner_value) for inner_key, inner_value in value.items())
    elif isinstance(value, list):
        content = "".join(_render_element(ITEM, item) for item in value)
    else:
        content = render_tag_value(value)
    return f"{PREFIX}<{key}>{content}{PREFIX}</{key}>"


def _render_body(call: TextCall) -> str:
    return f'"{call.name}">{"".join(_render_element(key, value) for key, value in call.arguments.items())}'


def _render_call(call: TextCall, index: int) -> str:
    return f"{INVOKE_START}{_render_body(call)}{INVOKE_END}"


def _is_round_trip_safe(call: TextCall, offered_tools: ToolSchemas) -> bool:
    parsed_calls = NestedTagReader()(_render_body(call), offered_tools, is_truncated=False).calls
    return [write_json(call.arguments) for call in parsed_calls] == [write_json(call.arguments)]


MINIMAX_M3 = TextFormat(
    "minimax_m3",
    (
        Block(INVOKE_START, NestedTagReader(), (INVOKE_END,), (CALLS_END, INVOKE_START)),
        # Models may leave out PREFIX before the tag around all calls.
        Block("<tool_call>", NestedTagReader(), body_starts=(INVOKE_START,), is_wrapper=True),
    ),
    CallLayout(_render_call, f"{CALLS_START}\n", "\n", f"\n{CALLS_END}"),
    PromptLayout(
        build_tool_lines_writer(
            "# Tools\n\nThese tools can be called:\n<tools>\n",
            f'\n</tools>\n\nTo call one, write:\n{CALLS_START}\n{INVOKE_START}"name">{PREFIX}<key>value{PREFIX}</key>'
            f"{INVOKE_END}\n{CALLS_END}",
            is_flat=True,
            line_frame=("<tool>", "</tool>"),
        ),
        build_enclosed_result_writer("<response>", "</response>"),
    ),
    dropped_tokens=(CALLS_START, CALLS_END, INVOKE_END, "[e~["),
    reasoning_markers=(("<mm:think>", "</mm:think>"),),
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=RoundTripLimits(
        r"[^\s<>\"']+", r"[^\s<>/]+", ("minimax[>[",), checks_nested_keys=True, is_call_safe=_is_round_trip_safe
    ),
)
