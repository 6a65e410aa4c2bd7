"""Calls that a model writes into its text: parsed and rendered in every known text format.

    parsed = parse(text, format="hermes", tools=tools)

Each text format is a value of TextFormat in `families/`; one decoder parses all formats.
"""

from collections.abc import Iterable

from toolbench.engine.formats.chat.rendering import PromptMessage, get_turn_spec, render_conversation
from toolbench.engine.formats.decoder import TextDecoder
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


def split_reasoning(text: str) -> tuple[str, str]:
    """Return the text without its reasoning, and the reasoning, both trimmed.

    The reasoning may be in the tags of any model family. Without an end tag of reasoning, or if the last reasoning has
    no end, the result is the unchanged text and "": a call may follow a start tag without an end.
    """
    if not any(end_marker in text for _, end_marker in REASONING_FORMAT.reasoning_markers):
        return text, ""
    decoder = TextDecoder(REASONING_FORMAT, ToolSchemas())
    decoder.feed(text)
    parsed_text = decoder.close()
    return (text, "") if parsed_text.findings else (parsed_text.text, parsed_text.reasoning)
