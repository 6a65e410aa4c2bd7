"""Gemma 3 (Python in a code fence), FunctionGemma and Gemma 4 (strings between special tokens)."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats.call_extent import find_value_end
from toolbench.engine.formats.call_writers import build_enclosed_result_writer, render_python_call, render_spaced_json
from toolbench.engine.formats.families.fenced import FENCE, build_fenced_json_blocks
from toolbench.engine.formats.families.gemma_repair import repair_gemma_calls
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.pythonic import PYTHONIC, build_bare_list_blocks
from toolbench.engine.formats.json_calls import parse_object
from toolbench.engine.formats.literals import read_value
from toolbench.engine.formats.python_calls import PythonCallReader
from toolbench.engine.formats.specification import (
    UNREADABLE_BLOCK,
    Block,
    CallLayout,
    ParsedBlock,
    ParsedCall,
    PromptLayout,
    RoundTripLimits,
    TextFormat,
)
from toolbench.engine.formats.types import TextCall, ToolSchemas, get_function
from toolbench.engine.tools.typed_schemas import SCHEMAS_BY_NAME, VALUE_KEYWORDS
from toolbench.engine.types import JsonObject

_HEADING = re.compile(r"\s*(?:call)?\s*:\s*(?P<name>[\w.-]+)\s*(?=\{)")
# Group `key` is a key without quotes. Strings and escapes are matched, too, so that no text in them counts as a key.
_STRING_OR_KEY = re.compile(r'\\.|"(?:[^"\\]|\\.)*+"|(?P<before>[{,]\s*)(?P<key>[^\s{}\[\]:,"\']+)\s*:', re.DOTALL)
_OPEN_APOSTROPHE = re.compile(r"'(?P<text>[^']*)\Z")
_PYTHON_INFO_STRING = re.compile(r"(?:tool_code|python|tool_call)?\s*")
_TOOL_CODE_INFO_STRING = re.compile(r"tool_code\s*")
_DELIMITER_MISSING = ("delimiter_missing",)


@dataclass(frozen=True, slots=True)
class GemmaCallReader:
    """A reader of one or more calls such as `call:name{key:value}`.

    Attributes:
        quote: the token before and after a string.
    """

    quote: str

    def __call__(self, body: str, offered_tools: ToolSchemas, *, is_truncated: bool) -> ParsedBlock:
        """Parse the text of a block; see BlockReader."""
        parsed_block = self._read_without_repair(body, is_truncated=is_truncated)
        if not parsed_block.problem_code or is_truncated:
            return parsed_block
        repaired_calls = repair_gemma_calls(body, self.quote, offered_tools, self._list_calls)
        return ParsedBlock(repaired_calls, deviation_codes=_DELIMITER_MISSING) if repaired_calls else parsed_block

    def _list_calls(self, body: str) -> tuple[ParsedCall, ...]:
        """Return the calls of a block that needs no repair; () for any other block."""
        parsed_block = self._read_without_repair(body, is_truncated=False)
        return () if parsed_block.problem_code else parsed_block.calls

    def _read_without_repair(self, body: str, *, is_truncated: bool) -> ParsedBlock:
        """Read the calls without `repair_gemma_calls`. The opening quote of one string may be an apostrophe."""
        calls: list[ParsedCall] = []
        quoted_parts = body.split(self.quote)
        parts = list(_iterate_parts(quoted_parts))
        if not is_truncated and any(not is_string and not part.strip() for part, is_string in parts[1:-1]):
            return UNREADABLE_BLOCK  # two strings without a separator, which Python would join
        text, start = "".join(json.dumps(part) if is_string else _quote_keys(part) for part, is_string in parts), 0
        while heading := _HEADING.match(text, start):
            end = find_value_end(text, heading.end())
            arguments = _parse_object(text[heading.end() : end]) if end is not None else None
            if end is None or arguments is None:
                return ParsedBlock(tuple(calls), "call_cut" if is_truncated and end is None else "call_unreadable")
            calls.append(ParsedCall(heading["name"], arguments))
            start = end
        if text[start:].strip(" \n,") or not calls:
            return ParsedBlock(tuple(calls), "call_cut" if is_truncated else "call_unreadable")
        has_apostrophe = len(parts) > len(quoted_parts)
        return ParsedBlock(tuple(calls), deviation_codes=_DELIMITER_MISSING if has_apostrophe else ())


def _parse_object(text: str) -> JsonObject | None:
    try:
        return parse_object(read_value(text))
    except InvalidJsonError:
        return None


def _iterate_parts(quoted_parts: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a body, each with whether it is a string or the text between strings.

    Args:
        quoted_parts: the body, split at its quote tokens. Every second part is a string, unless the number of quote
            tokens is odd and an apostrophe opens a string that the next quote token closes. If the number is odd
            without such an apostrophe, the last part is a string that is not closed.
    """
    has_unpaired_quote = len(quoted_parts) % 2 == 0
    is_string = False
    for part in quoted_parts:
        apostrophe = _OPEN_APOSTROPHE.search(part) if has_unpaired_quote and not is_string else None
        if apostrophe:
            yield part[: apostrophe.start()], False
            yield apostrophe["text"], True
            has_unpaired_quote = False
        else:
            yield part, is_string
            is_string = not is_string


def _quote_keys(code: str) -> str:
    return _STRING_OR_KEY.sub(
        lambda match: f"{match['before']}{json.dumps(match['key'])}:" if match["key"] else match[0], code
    )


def _build_call_writer(start_marker: str, quote: str, end_marker: str) -> Callable[[TextCall, int], str]:
    def write(call: TextCall, index: int) -> str:
        return f"{start_marker}call:{call.name}{_render_value(call.arguments, quote)}{end_marker}"

    return write


def _render_value(value: object, quote: str) -> str:
    """Render a value with unquoted keys and with `quote` before and after each string."""
    if isinstance(value, str):
        return quote + value + quote
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_render_value(item, quote)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_render_value(item, quote) for item in value) + "]"
    return render_spaced_json(value)


def _convert_types_to_upper(schema: object) -> object:
    """Return a schema with its type names in capitals, as Gemma's declarations require.

    Values in the schema, such as defaults, stay unchanged.
    """
    if isinstance(schema, list):
        return [_convert_types_to_upper(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {keyword: _convert_types_in_keyword(keyword, value) for keyword, value in schema.items()}


def _convert_types_in_keyword(keyword: str, value: object) -> object:
    """Return the value of a schema's keyword, with type names in capitals."""
    if keyword == "type":
        return [_to_upper(name) for name in value] if isinstance(value, list) else _to_upper(value)
    if keyword in VALUE_KEYWORDS:
        return value
    if keyword in SCHEMAS_BY_NAME and isinstance(value, dict):
        return {name: _convert_types_to_upper(schema) for name, schema in value.items()}
    return _convert_types_to_upper(value)


def _to_upper(name: object) -> object:
    return name.upper() if isinstance(name, str) else name


def _build_declarations_writer(start_marker: str, quote: str, end_marker: str) -> Callable[[Sequence[JsonObject]], str]:
    def write(tools: Sequence[JsonObject]) -> str:
        functions = [get_function(tool) for tool in tools]
        declared_parts = [
            {key: function[key] for key in ("description", "parameters") if key in function} for function in functions
        ]
        rendered_parts = [_render_value(_convert_types_to_upper(part), quote) for part in declared_parts]
        return "".join(
            f"{start_marker}declaration:{function.get('name')}{part}{end_marker}"
            for function, part in zip(functions, rendered_parts, strict=True)
        )

    return write


def _build_format(
    name: str, call_tokens: tuple[str, str, str], prompt: PromptLayout, reasoning_markers: tuple[tuple[str, str], ...]
) -> TextFormat:
    """Return a text format with strings between special tokens.

    `call_tokens` are the start marker of a call, the token before and after a string, and the end marker of a call.
    """
    start_marker, quote, end_marker = call_tokens
    return TextFormat(
        name,
        (Block(start_marker, GemmaCallReader(quote), (end_marker,), (start_marker,), value_markers=(quote, quote)),),
        CallLayout(_build_call_writer(*call_tokens), between_calls=""),
        prompt,
        dropped_tokens=(end_marker, "<turn|>", "<end_of_turn>", "<start_function_response>", "<|tool_response>"),
        reasoning_markers=reasoning_markers,
        build_bare_blocks=build_bare_json_blocks,
        round_trip_limits=RoundTripLimits(
            r"[\w.-]+", r"[^\s{}\[\]:,\"'<]+", (quote, start_marker, end_marker), checks_nested_keys=True
        ),
    )


def build_fenced_python_blocks(names: Sequence[str]) -> tuple[Block, ...]:
    """Return a block for a code fence that begins with a Python call of an offered tool or a list of such calls."""
    body_starts = tuple(f"{prefix}{name}(" for name in names for prefix in ("", "["))
    reader = PythonCallReader()
    return (Block(FENCE, reader, (FENCE,), body_starts=body_starts, skipped_pattern=_PYTHON_INFO_STRING, is_bare=True),)


def build_whole_tool_code_blocks(names: Sequence[str]) -> tuple[Block, ...]:
    """Return the block of `build_fenced_python_blocks`, restricted to a `tool_code` fence that is the whole answer."""
    return tuple(
        replace(block, skipped_pattern=_TOOL_CODE_INFO_STRING, must_be_whole_answer=True)
        for block in build_fenced_python_blocks(names)
    )


GEMMA3 = TextFormat(
    "gemma3",
    (),
    CallLayout(render_python_call, f"{FENCE}tool_code\n", "\n", f"\n{FENCE}"),
    PromptLayout(
        PYTHONIC.prompt.write_tools,
        build_enclosed_result_writer(f"{FENCE}tool_output\n", f"\n{FENCE}"),
    ),
    dropped_tokens=("<end_of_turn>",),
    build_bare_blocks=lambda names: (
        *build_fenced_python_blocks(names),
        *build_fenced_json_blocks(names),
        *build_bare_json_blocks(names),
        *build_bare_list_blocks(names),
    ),
    round_trip_limits=RoundTripLimits(
        PYTHONIC.round_trip_limits.name_pattern, PYTHONIC.round_trip_limits.key_pattern, (FENCE,)
    ),
    is_native=False,
)
FUNCTION_GEMMA = _build_format(
    "function_gemma",
    ("<start_function_call>", "<escape>", "<end_function_call>"),
    PromptLayout(
        _build_declarations_writer("<start_function_declaration>", "<escape>", "<end_function_declaration>"),
        build_enclosed_result_writer("Function result for {name}: ", ""),
    ),
    (("<think>", "</think>"),),
)
GEMMA4 = _build_format(
    "gemma4",
    ("<|tool_call>", '<|"|>', "<tool_call|>"),
    PromptLayout(
        _build_declarations_writer("<|tool>", '<|"|>', "<tool|>"),
        build_enclosed_result_writer('<|tool_response>response:{name}{value:<|"|>', '<|"|>}<tool_response|>'),
        results_between="",
    ),
    (("<|channel>thought", "<channel|>"),),
)
