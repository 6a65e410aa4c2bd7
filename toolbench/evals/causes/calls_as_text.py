"""Why calls come as text: four causes, each with what speaks for or against it and what to do."""

from dataclasses import dataclass
from typing import Literal

from toolbench.engine.capabilities.record import Capabilities

Verdict = Literal["likely", "possible", "ruled out", "unknown"]


@dataclass(frozen=True, slots=True)
class Clues:
    """What is known. `dialect` is that of a call found in a text; `siblings` are other places that serve the same
    weights and call natively; `self_hosted` servers have a tool parser that somebody switches on."""

    known: Capabilities
    dialect: str = ""
    siblings: tuple[str, ...] = ()
    self_hosted: bool = False


@dataclass(frozen=True, slots=True)
class Cause:
    code: str
    title: str
    verdict: Verdict
    evidence: str
    remedy: str


def causes(clues: Clues) -> tuple[Cause, ...]:
    """The four, always in the same order. A verdict without evidence is unknown."""
    return (_model(clues), _configuration(clues), _behaviour(clues), _provider(clues))


def _model(clues: Clues) -> Cause:
    known = clues.known
    verdict: Verdict = "unknown"
    evidence = "Nobody has probed it yet."
    if known.supports_tool_use:
        verdict, evidence = "ruled out", "It calls in tool_calls here."
    elif clues.siblings:
        verdict, evidence = "ruled out", f"The same weights call natively at {', '.join(clues.siblings)}."
    elif clues.dialect or known.text_format:
        verdict, evidence = "ruled out", f"It writes calls, in the dialect {clues.dialect or known.text_format}."
    elif known.tools_field == "accepted" and known.supports_tool_use is False:
        verdict, evidence = "likely", "It is given the tools and answers in words, also when a call is required."
    elif known.tools_field == "refused":
        verdict, evidence = "possible", "The endpoint refuses tools for it."
    remedy = "Choose another model, or ask for calls as text JSON or constrained."
    return Cause("model", "The model does not support tool calling", verdict, evidence, remedy)


def _configuration(clues: Clues) -> Cause:
    dialect = clues.dialect or clues.known.text_format
    verdict: Verdict = "unknown"
    evidence = "Nothing speaks for or against it."
    if clues.known.supports_tool_use:
        verdict, evidence = "ruled out", "Calls come back in tool_calls."
    elif clues.known.tools_field == "refused":
        verdict, evidence = "likely", "The endpoint refuses requests with tools."
    elif dialect and clues.self_hosted:
        verdict, evidence = "likely", f"A server of one's own passes on calls in {dialect} as text: its parser is off."
    elif clues.known.tools_field == "dropped" and clues.self_hosted:
        verdict, evidence = "likely", "The chat template of this server has no place for tools."
    remedy = (
        f"Switch on the server's tool parser{f' for {dialect}' if dialect else ''}, or give it a template with tools."
    )
    return Cause("configuration", "The API is not set up for it", verdict, evidence, remedy)


def _behaviour(clues: Clues) -> Cause:
    dialect = clues.dialect or clues.known.text_format
    verdict: Verdict = "unknown"
    evidence = "No call was seen in a text."
    if dialect:
        verdict, evidence = "likely", f"The text holds a whole call in the dialect {dialect}."
    elif clues.known.supports_tool_use:
        verdict, evidence = "ruled out", "Calls come back in tool_calls."
    reads = (
        "The preset content_tag_tool_call_fallback reads it" if dialect == "hermes" else "The method text_json reads it"
    )
    remedy = f"{reads}; the method template speaks the dialect; constrained enforces a form."
    return Cause("behaviour", "The model writes calls as text", verdict, evidence, remedy)


def _provider(clues: Clues) -> Cause:
    verdict: Verdict = "unknown"
    evidence = "No other place that serves these weights was probed."
    if clues.known.tools_field == "dropped" and not clues.self_hosted:
        verdict, evidence = "likely", "The tools never reach the prompt: the request has as many tokens without them."
    elif clues.known.supports_tool_use:
        verdict, evidence = "ruled out", "Calls come back in tool_calls."
    elif clues.siblings:
        verdict, evidence = "likely", f"The same weights call natively at {', '.join(clues.siblings)}."
    remedy = "Use one of those places, or another method at this one."
    return Cause("provider", "The provider handles tools in its own way", verdict, evidence, remedy)
