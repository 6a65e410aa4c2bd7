"""Calls that a model writes into its text, in every dialect we know: read, written and streamed.

    parsed = parse(text, format="hermes", tools=tools)

A dialect is one value in `families/`; reading is one decoder for all of them."""

from collections.abc import Iterable

from toolbench.engine.formats.chat.rendering import PromptMessage, get_turn_spec, render_conversation
from toolbench.engine.formats.decoder import TextDecoder
from toolbench.engine.formats.registry import AUTO, REASONING_FORMAT, get_format, list_format_names
from toolbench.engine.formats.rendering import get_result_role, render, render_result, render_results, render_tools
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
    "get_result_role",
    "get_turn_spec",
    "is_round_trip_safe",
    "list_format_names",
    "parse",
    "render",
    "render_conversation",
    "render_result",
    "render_results",
    "render_tools",
    "split_reasoning",
    "stream",
]


def stream(format: str = AUTO, tools: Iterable[Tool] = (), *, guess_untyped: bool = False) -> TextDecoder:
    """A decoder to feed with an answer's text as it comes. `guess_untyped` reads tagged values without a schema as JSON
    where they are JSON; else they stay text. Raises PlanError for an unknown format."""
    return TextDecoder(get_format(format), build_tool_schemas(tools, guess_untyped=guess_untyped))


def parse(text: str, *, format: str = AUTO, tools: Iterable[Tool] = (), guess_untyped: bool = False) -> ParsedText:
    """A whole text, read; as a stream that is fed once. No text makes it raise."""
    decoder = stream(format, tools, guess_untyped=guess_untyped)
    decoder.feed(text)
    return decoder.close()


def split_reasoning(text: str) -> tuple[str, str]:
    """The text without the reasoning in it, in any family's tags, and that reasoning. Where it is not closed the text
    stays as it is: what is called for in it may be meant."""
    if not any(closer in text for _, closer in REASONING_FORMAT.reasoning):
        return text, ""
    decoder = TextDecoder(REASONING_FORMAT, ToolSchemas())
    decoder.feed(text)
    parsed = decoder.close()
    return (text, "") if parsed.findings else (parsed.text, parsed.reasoning)
