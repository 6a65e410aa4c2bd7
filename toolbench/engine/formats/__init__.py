"""Calls that a model writes into its text, in every dialect we know: read, written and streamed.

    parsed = parse(text, format="hermes", tools=tools)

A dialect is one value in `families/`; reading is one decoder for all of them."""

from collections.abc import Iterable

from toolbench.engine.formats.conversations import Said, render_conversation, turns_of
from toolbench.engine.formats.decoder import Decoder
from toolbench.engine.formats.holding import can_hold
from toolbench.engine.formats.registry import AUTO, THOUGHTS, format_named, names
from toolbench.engine.formats.rendering import render, render_result, render_results, render_tools, result_role
from toolbench.engine.formats.values import Known, ParsedText, Piece, TextCall, Tool, known_tools

__all__ = [
    "AUTO",
    "THOUGHTS",
    "Decoder",
    "ParsedText",
    "Piece",
    "Said",
    "TextCall",
    "Tool",
    "can_hold",
    "names",
    "parse",
    "render",
    "render_conversation",
    "render_result",
    "render_results",
    "render_tools",
    "result_role",
    "split_reasoning",
    "stream",
    "turns_of",
]


def stream(format: str = AUTO, tools: Iterable[Tool] = (), *, guess_untyped: bool = False) -> Decoder:
    """A decoder to feed with an answer's text as it comes. `guess_untyped` reads tagged values without a schema as JSON
    where they are JSON; else they stay text. Raises PlanError for an unknown format."""
    return Decoder(format_named(format), known_tools(tools, guess_untyped=guess_untyped))


def parse(text: str, *, format: str = AUTO, tools: Iterable[Tool] = (), guess_untyped: bool = False) -> ParsedText:
    """A whole text, read; as a stream that is fed once. No text makes it raise."""
    decoder = stream(format, tools, guess_untyped=guess_untyped)
    decoder.feed(text)
    return decoder.close()


def split_reasoning(text: str) -> tuple[str, str]:
    """The text without the reasoning in it, in any family's tags, and that reasoning. Where it is not closed the text
    stays as it is: what is called for in it may be meant."""
    if not any(closer in text for _, closer in THOUGHTS.reasoning):
        return text, ""
    decoder = Decoder(THOUGHTS, Known())
    decoder.feed(text)
    parsed = decoder.close()
    return (text, "") if parsed.findings else (parsed.text, parsed.reasoning)
