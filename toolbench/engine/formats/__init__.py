"""Calls that a model writes into its text: parsed and rendered in every known text format.

    parsed = parse(text, format="hermes", tools=tools)

Each text format is a value of TextFormat in `families/`; one decoder parses all formats.
"""

from collections.abc import Iterable

from toolbench.engine.formats.chat.rendering import PromptMessage, get_turn_spec, render_conversation
from toolbench.engine.formats.decoder import TextDecoder
from toolbench.engine.formats.marker_set import build_marker_set
from toolbench.engine.formats.registry import AUTO, REASONING_FORMAT, get_format, list_format_names
from toolbench.engine.formats.rendering import render, render_results, render_tools
from toolbench.engine.formats.round_trip import is_round_trip_safe
from toolbench.engine.formats.types import DecoderEvent, ParsedText, TextCall, Tool, ToolSchemas, build_tool_schemas

__all__ = [
    "AUTO",
    "REASONING_FORMAT",
    "DecoderEvent",
    "ParsedText",
    "PromptMessage",
    "TextCall",
    "TextDecoder",
    "Tool",
    "get_turn_spec",
    "is_round_trip_safe",
    "list_format_names",
    "parse",
    "render",
    "render_conversation",
    "render_results",
    "render_tools",
    "select_distinct_formats",
    "split_open_reasoning",
    "split_reasoning",
    "stream",
]


def stream(format: str = AUTO, tools: Iterable[Tool] = (), *, guess_untyped: bool = False) -> TextDecoder:
    """Return a decoder for an answer that arrives in chunks.

    Args:
        format: the name of a text format; `auto` reads all of them.
        tools: the tools that are offered to the model.
        guess_untyped: whether a value between tags that has no schema is converted if it is valid JSON. Otherwise it
            stays text.

    Raises:
        PlanError: the format is unknown.
    """
    return TextDecoder(get_format(format), build_tool_schemas(tools, guess_untyped=guess_untyped))


def parse(text: str, *, format: str = AUTO, tools: Iterable[Tool] = (), guess_untyped: bool = False) -> ParsedText:
    """Parse a complete text; the parameters are those of `stream`.

    Every text can be parsed: a call that cannot be read stays in the result's text.

    Raises:
        PlanError: the format is unknown.
    """
    decoder = stream(format, tools, guess_untyped=guess_untyped)
    decoder.feed(text)
    return decoder.close()


def select_distinct_formats(text: str, names: Iterable[str], tools: Iterable[Tool] = ()) -> list[str]:
    """Return the names of text formats without those that parse this text in the same way as an earlier one.

    Raises:
        PlanError: a format is unknown.
    """
    tool_names = tuple(build_tool_schemas(tools).schemas)
    distinct_names, keys = [], []
    for name in names:
        text_format = get_format(name)
        key = (text_format.treats_tokens_as_markup, build_marker_set(text_format, tool_names).build_key(text))
        if key not in keys:
            distinct_names.append(name)
            keys.append(key)
    return distinct_names


def split_reasoning(text: str) -> tuple[str, str]:
    """Return the text without its closed reasoning, and this reasoning, both trimmed.

    The reasoning may be in the tags of any model family. Tags in code and tags that are only mentioned are text; a
    start tag that directly follows a word on its line counts as mentioned. Reasoning that is not closed stays in the
    text with its start tag, since it may contain calls. A text without end tags is returned unchanged.
    """
    closed_text, open_text = split_open_reasoning(text)
    if not any(end_marker in closed_text for _, end_marker in REASONING_FORMAT.reasoning_markers):
        return text, ""
    parsed_text, _ = _parse_reasoning(closed_text)
    blank_end = closed_text[len(closed_text.rstrip()) :]
    return f"{parsed_text.text}{blank_end}{open_text}".strip(), parsed_text.reasoning


def split_open_reasoning(text: str) -> tuple[str, str]:
    """Return the text before reasoning that is not closed, and the rest; "" if all reasoning is closed."""
    if all(text.rfind(start) <= text.rfind(end) for start, end in REASONING_FORMAT.reasoning_markers):
        return text, ""
    parsed_text, last_reasoning_start = _parse_reasoning(text)
    return (text[:last_reasoning_start], text[last_reasoning_start:]) if parsed_text.findings else (text, "")


def _parse_reasoning(text: str) -> tuple[ParsedText, int]:
    """Return the parsed text, and the offset of the last start tag that began reasoning; -1 for none.

    The parsed text has a finding if this reasoning has no end.
    """
    decoder = TextDecoder(REASONING_FORMAT, ToolSchemas())
    decoder.feed(text)
    return decoder.close(), decoder.last_reasoning_start
