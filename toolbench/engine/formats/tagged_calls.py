"""Readers of calls with tags around keys and values."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from toolbench.engine.formats.specification import (
    TRUNCATED_BLOCK,
    UNREADABLE_BLOCK,
    BlockReader,
    ParsedBlock,
    ParsedCall,
)
from toolbench.engine.formats.types import ToolSchemas

# JSON types by the value of an attribute such as `string`, which says whether the argument is a string.
TYPES_BY_STRING_FLAG = {"true": "string", "false": "integer|number|boolean|null|array|object|string"}
_WRAPPER_KEYS = ("arguments", "input")  # parameters in which models wrap all arguments
ConvertValue: TypeAlias = Callable[[str, str, str, ToolSchemas], Any]  # takes text, tool name, key and schemas


@dataclass(frozen=True, slots=True)
class TaggedReader:
    """A reader of a call with a tag for each argument, such as `<parameter=city>Paris</parameter>`.

    Instead of tags, the arguments may be one JSON object.

    Attributes:
        name_pattern: matches at the beginning of the block. Group `name` is the tool's name, an optional group `id` the
            call's id.
        key_pattern: matches the tags before a value, such as `<parameter=city>`. Group `key` is the argument's key. An
            optional group `kind` is the type of the value, which overrides the schema. An optional group `opened` is
            None if the tag that opens the value is missing.
        value_end: the end tag of a value.
        call_end: a text that may end the call.
        strips_line_breaks: whether one line break is removed from each end of a value.
        is_escaped: whether markup in a value is written as entities.
        types_by_word: JSON types, separated by `|`, by the word in group `kind`; a word without an entry is itself the
            name of a type.
        decode_attribute: decodes the text of a name or key.
        decode_value: decodes the text of a value without `kind`.
    """

    name_pattern: re.Pattern[str]
    key_pattern: re.Pattern[str]
    value_end: str
    call_end: str = ""
    strips_line_breaks: bool = False
    is_escaped: bool = False
    types_by_word: Mapping[str, str] = field(default_factory=dict)
    decode_attribute: Callable[[str], str] = str
    decode_value: Callable[[str], str] = str

    def __call__(self, body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
        """Read the call in the text of a block."""
        heading = self.name_pattern.match(body)
        name = self.decode_attribute(clean_name(heading["name"])) if heading else ""
        if heading is None or not name:
            return TRUNCATED_BLOCK if is_truncated else UNREADABLE_BLOCK
        call_id = heading.groupdict().get("id") or ""
        remaining_text = body[heading.end() :]
        if remaining_text.lstrip().startswith("{"):
            call = ParsedCall(name, {}, call_id)
            return _read_json_arguments(call, remaining_text.lstrip(), self.value_end, is_truncated=is_truncated)
        if is_truncated:
            return TRUNCATED_BLOCK
        deviation_codes: set[str] = set()
        arguments = self._read_arguments(name, remaining_text, offered_tools, deviation_codes)
        if arguments is None:
            return UNREADABLE_BLOCK
        inner_arguments = _unwrap_arguments(arguments, name, offered_tools)
        if inner_arguments is not None:
            arguments = inner_arguments
            deviation_codes.add("arguments_wrapped")
        return ParsedBlock((ParsedCall(name, arguments, call_id),), deviation_codes=tuple(sorted(deviation_codes)))

    def _read_arguments(
        self, tool_name: str, text: str, offered_tools: ToolSchemas, deviation_codes: set[str]
    ) -> dict[str, Any] | None:
        """Return the arguments by key, or None if they cannot be read.

        They cannot be read if there is text before the first key, or text but no key, or if a lost tag hides where a
        value begins or ends.
        """
        starts = self._find_value_starts(tool_name, text, offered_tools)
        if any(map(_is_tag_missing, starts)):
            deviation_codes.add("tag_missing")
        text_without_end = text.replace(self.call_end, "") if self.call_end else text
        leading_text = text[: starts[0].start()] if starts else text_without_end
        if leading_text.strip() or not starts:
            return None if leading_text.strip() else {}
        ends = [*(start.start() for start in starts[1:]), len(text)]
        pairs = [(start, text[start.end() : end]) for start, end in zip(starts, ends, strict=True)]
        if any(self._is_extent_doubtful(start, value) for start, value in pairs):
            return None
        return group_by_key(
            ((self._get_key(start), (start, value)) for start, value in pairs),
            lambda key, pair: self._convert_value_text(tool_name, *pair, offered_tools, convert_value),
            lambda key, pair: list_items(self._convert_value_text(tool_name, *pair, offered_tools, convert_items)),
            lambda key: is_list_allowed(tool_name, key, offered_tools),
            deviation_codes,
        )

    def _get_key(self, start: re.Match[str]) -> str:
        """Return the key of the argument whose value begins with a match of `key_pattern`."""
        return self.decode_attribute(start["key"].strip())

    def _is_extent_doubtful(self, start: re.Match[str], value: str) -> bool:
        """Return whether a lost tag hides where a value begins or ends.

        The result is True if the value contains a part of its end tag or a stray tag, or if there is white space where
        a tag should be. `value` extends to the next key.
        """
        if self.value_end in value:
            return _get_trailing_space(start[0]) not in ("", "\n") or self._has_stray_tag(value)
        value_text = self._remove_call_end(value)
        has_tag_part = any(token in value_text for token in _TAG.findall(self.value_end))
        return has_tag_part or _get_trailing_space(start[0]) not in ("", "\n") or _get_trailing_space(value_text) != ""

    def _remove_call_end(self, value: str) -> str:
        """Return a value without the end of the call and one line break before it.

        With `strips_line_breaks`, the line break that belongs to the value is removed, too.
        """
        end = value.rfind(self.call_end) if self.call_end else -1
        value = (value[:end] if end >= 0 else value).removesuffix("\n")
        return value.removesuffix("\n") if self.strips_line_breaks else value

    def _has_stray_tag(self, value: str) -> bool:
        """Return whether a value contains an end tag without a start tag, or a start tag without an end tag.

        With `strips_line_breaks`, an end tag that is not alone on its line is text. `value` extends to the next key.
        """
        text_before_end = value[: max(value.rfind(self.value_end), 0)]
        end = f"\n{self.value_end}\n" if self.strips_line_breaks else self.value_end
        starts = list(self.key_pattern.finditer(text_before_end))
        opened_count = sum(not _is_tag_missing(start) for start in starts)
        return text_before_end.count(end) > len(starts) or opened_count > text_before_end.count(self.value_end)

    def _find_value_starts(self, tool_name: str, text: str, offered_tools: ToolSchemas) -> list[re.Match[str]]:
        """Return the matches of `key_pattern` at which values begin, in order.

        Before the end tag of a value, a match begins a new value only if its key is a parameter of the tool, and only
        if its opening tag is present or is missing from both values.
        """
        properties = offered_tools.schemas.get(tool_name, {}).get("properties")
        starts: list[re.Match[str]] = []
        end = -1  # index of the end tag of the last value
        for start in self.key_pattern.finditer(text):
            is_parameter = not isinstance(properties, dict) or self._get_key(start) in properties
            are_both_missing = bool(starts) and _is_tag_missing(start) and _is_tag_missing(starts[-1])
            if not starts or end < start.start() or (is_parameter and (not _is_tag_missing(start) or are_both_missing)):
                starts.append(start)
                if end < start.end():
                    end = text.find(self.value_end, start.end())
                    end = end if end >= 0 else len(text)
        return starts

    def _convert_value_text(
        self, tool_name: str, start: re.Match[str], text: str, offered_tools: ToolSchemas, convert: ConvertValue
    ) -> Any:
        """Convert the value at the beginning of `text`, which extends to the next key."""
        end = text.rfind(self.value_end)
        value_text = text[:end] if end >= 0 else self._remove_call_end(text)
        if self.strips_line_breaks:
            value_text = value_text.removeprefix("\n")
            value_text = value_text.removesuffix("\n") if end >= 0 else value_text
        if self.is_escaped:
            value_text = unescape(value_text, {"&quot;": '"'})
        type_word = start.groupdict().get("kind")
        type_word = self.types_by_word.get(type_word, type_word) if type_word else ""
        if type_word:
            return value_text if type_word == "string" else parse_as_types(value_text, type_word.split("|"))
        return convert(self.decode_value(value_text), tool_name, self._get_key(start), offered_tools)


_TAG = re.compile(r"<[^<>]+>")


def _get_trailing_space(text: str) -> str:
    return text[len(text.rstrip()) :]


def _is_tag_missing(start_match: re.Match[str]) -> bool:
    """Return whether the tag that opens the value of a key is missing, if the format can detect it."""
    return start_match.groupdict().get("opened", "") is None


@dataclass(frozen=True, slots=True)
class FirstMatchReader:
    """A reader that tries several readers: the first result with a call counts, else the first result."""

    readers: Sequence[BlockReader]

    def __call__(self, body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
        """Read the calls in the text of a block."""
        parsed_blocks = [reader(body, offered_tools, is_truncated=is_truncated) for reader in self.readers]
        return next((parsed_block for parsed_block in parsed_blocks if parsed_block.calls), parsed_blocks[0])


@dataclass(frozen=True, slots=True)
class AttributeReader:
    """A reader of a tool's name and `key=value` pairs, as in `get_weather city="New York" days=2`."""

    def __call__(self, body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
        """Read the call in the text of a block."""
        name, _, remaining_text = body.strip().partition(" ")
        if is_truncated or not _NAME.fullmatch(name) or not _PAIRS.fullmatch(remaining_text):
            return TRUNCATED_BLOCK if is_truncated else UNREADABLE_BLOCK
        deviation_codes = {"attributes"}
        pairs = ((match["key"], _strip_quotes(match["value"])) for match in _PAIR.finditer(remaining_text))
        arguments = convert_by_key(pairs, name, offered_tools, deviation_codes)
        return ParsedBlock((ParsedCall(name, arguments),), deviation_codes=tuple(sorted(deviation_codes)))


_NAME = re.compile(r"[\w.:/-]+")
_PAIR = re.compile(r"""\s*(?P<key>[\w.-]+)=(?P<value>"[^"]*"|'[^']*'|[^\s"']+)(?=\s|$)""")
_PAIRS = re.compile(rf"(?:{_PAIR.pattern.replace('?P<key>', '?:').replace('?P<value>', '?:')})+\s*")


def convert_by_key(
    pairs: Iterable[tuple[str, str]], tool_name: str, offered_tools: ToolSchemas, deviation_codes: set[str]
) -> dict[str, Any]:
    """Return the values of untyped texts by key; repeated keys are treated as in `group_by_key`."""
    return group_by_key(
        pairs,
        lambda key, text: convert_value(text, tool_name, key, offered_tools),
        lambda key, text: convert_items(text, tool_name, key, offered_tools),
        lambda key: is_list_allowed(tool_name, key, offered_tools),
        deviation_codes,
    )


def _strip_quotes(value: str) -> str:
    return value[1:-1] if value[0] in "\"'" else value


def _read_json_arguments(call: ParsedCall, text: str, value_end: str, *, is_truncated: bool) -> ParsedBlock:
    """Read the arguments of `call`, which are written as JSON.

    If `value_end`, the end tag of a value, follows the object, the start tag of a value is lost and the call is
    unreadable.
    """
    end = find_value_end(text, 0)
    if end is not None and value_end and text.find(value_end, end) >= 0:
        return UNREADABLE_BLOCK
    if end is None:
        return TRUNCATED_BLOCK if is_truncated else UNREADABLE_BLOCK
    try:
        arguments = parse_object(read_value(text[:end]))
    except InvalidJsonError:
        return UNREADABLE_BLOCK
    return UNREADABLE_BLOCK if arguments is None else ParsedBlock((replace(call, arguments=arguments),))


def _unwrap_arguments(arguments: dict[str, Any], tool_name: str, offered_tools: ToolSchemas) -> dict[str, Any] | None:
    """Return the arguments that are wrapped in one parameter unknown to the tool; None if there are none."""
    key = next(iter(arguments), "")
    properties = offered_tools.schemas.get(tool_name, {}).get("properties")
    if len(arguments) != 1 or key not in _WRAPPER_KEYS or not isinstance(properties, dict) or key in properties:
        return None
    return parse_object(arguments[key])
