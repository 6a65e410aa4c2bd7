"""Reader of calls that are written as Python calls."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from unicodedata import is_normalized

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats.call_extent import find_value_end, split_arguments
from toolbench.engine.formats.coercion import group_by_key, is_list_allowed, list_items
from toolbench.engine.formats.literals import evaluate_literal, parse_python
from toolbench.engine.formats.specification import ParsedBlock, ParsedCall
from toolbench.engine.formats.types import ToolSchemas

_SEPARATORS = re.compile(r"[\s,;\[\]]*")
_NAME_AND_BRACKET = re.compile(r"(?P<name>[\w.-]+)\s*\(")
_NAME_START = re.compile(r"[\w.-]+\s*")
_KEY = re.compile(r"\s*(?P<key>[\w-]+)\s*=(?!=)")
# In a text with these characters, `_read_with_one_parse` could give another result than reading the calls one by one.
_UNSAFE_CHARACTERS = re.compile(r"[\\#\n\r\ud800-\udfff]")
_NEXT_KEY = re.compile(r",\s*(?=[\w-]+\s*=)")


@dataclass(frozen=True, slots=True)
class PythonCallReader:
    """A reader of one or more calls such as `f(a=1)`, in a list or line by line.

    Values are literals. Positional values get the names of the parameters, in the order of the schema.

    Attributes:
        suffix: a text that is removed from the end of tool names.
    """

    suffix: str = ""

    def __call__(self, body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
        """Read the calls in the text of a block."""
        calls = None if is_truncated else _read_with_one_parse(body.strip(), self.suffix, offered_tools)
        return ParsedBlock(calls) if calls else self._read_one_by_one(body, offered_tools, is_truncated=is_truncated)

    def _read_one_by_one(self, body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
        """Read the calls one by one, so that those before a truncated or unreadable call are kept."""
        calls: list[ParsedCall] = []
        deviation_codes: set[str] = set()
        index = _skip_separators(body, 0)
        problem_code = "call_cut" if is_truncated and index == len(body) else ""
        while index < len(body):
            name_match = _NAME_AND_BRACKET.match(body, index)
            end = find_value_end(body, name_match.end() - 1) if name_match else None
            if name_match and end is None and not is_truncated:
                end = body.rfind(")") + 1  # quotes that are not escaped may hide the bracket
            if name_match is None or not end or end <= name_match.end() - 1:
                is_name_begun = name_match is not None or _NAME_START.fullmatch(body, index) is not None
                problem_code = "call_cut" if is_truncated and is_name_begun else "call_unreadable"
                break
            name = name_match["name"].removesuffix(self.suffix)
            arguments = _read_arguments(body[name_match.end() : end - 1], name, offered_tools, deviation_codes)
            if arguments is None:
                problem_code = "call_unreadable"
            else:
                calls.append(ParsedCall(name, arguments, raw_text=body[index:end]))
            index = _skip_separators(body, end)
        return ParsedBlock(tuple(calls), problem_code, tuple(sorted(deviation_codes)))


def _read_with_one_parse(body: str, suffix: str, offered_tools: ToolSchemas) -> tuple[ParsedCall, ...] | None:
    """Read all calls with one parse, which is several times faster than reading them one by one.

    The result is None if the text is not one valid call or a list of them, or if reading the calls one by one may give
    another result: for comments, escapes, several lines, and names that Python normalises.
    """
    if _UNSAFE_CHARACTERS.search(body) or not is_normalized("NFKC", body):
        return None
    source, previous_end, calls = body.encode(), 0, []  # positions in a syntax tree are counted in bytes
    try:
        tree = parse_python(body, is_exact=True)
        for node in tree.elts if isinstance(tree, (ast.List, ast.Tuple)) else [tree]:
            end = node.end_col_offset or 0
            raw_text = source[node.col_offset : end].decode()
            calls.append(_build_call(node, raw_text, suffix, offered_tools))
            if not _SEPARATORS.fullmatch(source[previous_end : node.col_offset].decode()):
                return None
            previous_end = end
    except InvalidJsonError:
        return None
    return tuple(calls)


def _build_call(node: ast.expr, raw_text: str, suffix: str, offered_tools: ToolSchemas) -> ParsedCall:
    """Return the call of a node, whose text is `raw_text`.

    Raises:
        InvalidJsonError: the node is no call of a plain or dotted name, a value is no literal or has no name, or a name
            is given twice.
    """
    name_match = _NAME_AND_BRACKET.match(raw_text)
    if (
        name_match is None
        or not isinstance(node, ast.Call)
        or not _is_dotted_name(node.func, name_match["name"].split("."))
    ):
        raise InvalidJsonError("no_call", "no call of a plain name")
    tool_name = name_match["name"].removesuffix(suffix)
    names = _get_parameter_names(offered_tools, tool_name)
    if len(node.args) > len(names) or any(keyword.arg is None for keyword in node.keywords):
        raise InvalidJsonError("no_name", "a value without a name")
    arguments = {name: evaluate_literal(value) for name, value in zip(names, node.args, strict=False)}
    arguments |= {str(keyword.arg): evaluate_literal(keyword.value) for keyword in node.keywords}
    if len(arguments) < len(node.args) + len(node.keywords):
        raise InvalidJsonError("repeated_name", "a name that is given twice")
    return ParsedCall(tool_name, arguments, raw_text=raw_text)


def _is_dotted_name(node: ast.expr, parts: list[str]) -> bool:
    """Return whether a node is the dotted name that consists of these parts."""
    for part in reversed(parts[1:]):
        if not isinstance(node, ast.Attribute) or node.attr != part:
            return False
        node = node.value
    return isinstance(node, ast.Name) and node.id == parts[0]


def _get_parameter_names(offered_tools: ToolSchemas, tool_name: str) -> list[str]:
    properties = offered_tools.schemas.get(tool_name, {}).get("properties")
    return list(properties) if isinstance(properties, dict) else []


def _skip_separators(text: str, index: int) -> int:
    match = _SEPARATORS.match(text, index)
    return match.end() if match else index


def _read_arguments(
    text: str, tool_name: str, offered_tools: ToolSchemas, deviation_codes: set[str]
) -> dict[str, Any] | None:
    """Return the arguments between the brackets of a call, or None if they cannot be read.

    If they cannot be read as Python, each value is read up to the last quotation mark before the next key.
    """
    if not text.strip():
        return {}
    try:
        pairs = list(_iterate_pairs(split_arguments(text), tool_name, offered_tools))
        return _group_arguments(pairs, tool_name, offered_tools, deviation_codes)
    except InvalidJsonError:
        pass
    try:
        pairs = [_parse_quoted_pair(part) for part in _NEXT_KEY.split(text)]
        arguments = _group_arguments(pairs, tool_name, offered_tools, deviation_codes)
    except InvalidJsonError:
        return None
    deviation_codes.add("quotes_repaired")
    return arguments


def _group_arguments(
    pairs: Sequence[tuple[str, Any]], tool_name: str, offered_tools: ToolSchemas, deviation_codes: set[str]
) -> dict[str, Any]:
    allows_list = partial(is_list_allowed, tool_name, offered_tools=offered_tools)
    return group_by_key(
        pairs, lambda name, value: value, lambda name, value: list_items(value), allows_list, deviation_codes
    )


def _iterate_pairs(parts: list[str], tool_name: str, offered_tools: ToolSchemas) -> Iterator[tuple[str, Any]]:
    """Yield the key and the value of each argument, whose texts are `parts`.

    A value without a key gets the name of the tool's parameter at the same position.

    Raises:
        InvalidJsonError: a value is no literal, or has neither a key nor a parameter at its position.
    """
    names = _get_parameter_names(offered_tools, tool_name)
    if not parts[-1].strip():
        parts = parts[:-1]
    for index, part in enumerate(parts):
        key_match = _KEY.match(part)
        if key_match is None and index >= len(names):
            raise InvalidJsonError("no_name", "a value without a name")
        key = key_match["key"] if key_match else names[index]
        yield key, evaluate_literal(parse_python(part[key_match.end() if key_match else 0 :].strip()))


def _parse_quoted_pair(part: str) -> tuple[str, Any]:
    """Parse a key and its value; quotation marks inside a value in quotes need no escape.

    Raises:
        InvalidJsonError: the key is missing, or a value without quotes is no literal.
    """
    key_match = _KEY.match(part)
    if key_match is None:
        raise InvalidJsonError("no_name", "a value without a name")
    value = part[key_match.end() :].strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return key_match["key"], value[1:-1]
    return key_match["key"], evaluate_literal(parse_python(value))
