"""Reasons why calls come as text: four causes, each with the evidence and a suggested fix.

A structured call that was received rules out every cause but the model's habit of writing calls. A cause is likely only
with two independent signs; with one it is possible.
"""

from dataclasses import dataclass
from typing import Literal

from toolbench.engine.capabilities.record import Capabilities

Likelihood = Literal["likely", "possible", "ruled out", "unknown"]


@dataclass(frozen=True, slots=True)
class TextCallEvidence:
    """The facts known about a model at its provider.

    Attributes:
        known: Its effective capabilities.
        dialect: The text format of a call found in the text of the trial at hand; "" without one.
        siblings: Other providers that serve the same weights and call natively.
        silent_siblings: Other providers that serve them and do not call natively.
        self_hosted: Whether the tool parser of the server can be switched on by its operator.
        silent_trials: Trials that needed a call and had no structured one; 0 if some had one, or with too few trials.
    """

    known: Capabilities
    dialect: str = ""
    siblings: tuple[str, ...] = ()
    silent_siblings: tuple[str, ...] = ()
    self_hosted: bool = False
    silent_trials: int = 0


@dataclass(frozen=True, slots=True)
class TextCallCause:
    """One possible cause with its likelihood, the evidence and a suggested fix."""

    code: str
    title: str
    verdict: Likelihood
    evidence: str
    remedy: str


def assess_text_call_causes(clues: TextCallEvidence) -> tuple[TextCallCause, ...]:
    """Return the four causes, always in the same order."""
    return (_assess_model(clues), _assess_configuration(clues), _assess_behaviour(clues), _assess_provider(clues))


def _rate_likelihood(signs: list[str], against: str, otherwise: str) -> tuple[Likelihood, str]:
    """Return verdict and evidence: `against` rules the cause out; otherwise the number of independent signs decides."""
    if against:
        return "ruled out", against
    verdict: Likelihood = "likely" if len(signs) > 1 else "possible" if signs else "unknown"
    return verdict, " ".join(signs) or otherwise


def _describe_native_calls(clues: TextCallEvidence) -> str:
    return "Calls come back in tool_calls." if clues.known.supports_tool_use else ""


def _describe_native_siblings(names: tuple[str, ...]) -> str:
    return f"The same weights call natively at {', '.join(names)}." if names else ""


def _assess_model(clues: TextCallEvidence) -> TextCallCause:
    known = clues.known
    written = clues.dialect or known.text_format
    writes = f"It writes calls, in the text format {written}." if written else ""
    signs = []
    if known.tools_field == "accepted" and known.supports_tool_use is False:
        signs.append("It is given the tools and answers in words, also when a call is required.")
    if known.tools_field == "refused":
        signs.append("The endpoint refuses tools for it.")
    if clues.silent_siblings:
        signs.append(f"The same weights do not call at {', '.join(clues.silent_siblings)} either.")
    if clues.silent_trials:
        signs.append(f"None of {clues.silent_trials} trials that needed a call had a structured one.")
    against = _describe_native_calls(clues) or _describe_native_siblings(clues.siblings) or writes
    verdict, evidence = _rate_likelihood(signs, against, "Nobody has probed it yet.")
    remedy = "Choose another model, or ask for calls as text JSON or constrained."
    return TextCallCause("model", "The model does not support tool calling", verdict, evidence, remedy)


def _assess_configuration(clues: TextCallEvidence) -> TextCallCause:
    dialect = clues.dialect or clues.known.text_format
    signs = []
    if clues.known.tools_field == "refused":
        signs.append("The endpoint refuses requests with tools.")
    if dialect and clues.self_hosted:
        signs.append(f"This server can be set up to read calls in {dialect}, and passes them on as text.")
    if clues.known.tools_field == "dropped" and clues.self_hosted:
        signs.append("The chat template of this server seems to have no place for tools.")
    if clues.siblings and clues.self_hosted:
        signs.append(_describe_native_siblings(clues.siblings))
    verdict, evidence = _rate_likelihood(signs, _describe_native_calls(clues), "Nothing speaks for or against it.")
    remedy = (
        f"Switch on the server's tool parser{f' for {dialect}' if dialect else ''}, or give it a template with tools."
    )
    return TextCallCause("configuration", "The API is not set up for it", verdict, evidence, remedy)


def _assess_behaviour(clues: TextCallEvidence) -> TextCallCause:
    dialect = clues.dialect or clues.known.text_format
    signs = []
    if clues.dialect:
        signs.append(f"The text of this trial holds a whole call in the text format {clues.dialect}.")
    if clues.known.text_format:
        signs.append(f"A probe found a call in the text format {clues.known.text_format}.")
    if clues.silent_trials and signs:
        signs.append(f"None of {clues.silent_trials} trials that needed a call had a structured one.")
    against = "" if clues.dialect else _describe_native_calls(clues)
    verdict, evidence = _rate_likelihood(signs, against, "No call was seen in a text.")
    reads = (
        "The preset content_tag_tool_call_fallback reads it" if dialect == "hermes" else "The method text_json reads it"
    )
    remedy = f"{reads}; the method template uses the same text format; constrained enforces a form."
    return TextCallCause("behaviour", "The model writes calls as text", verdict, evidence, remedy)


def _assess_provider(clues: TextCallEvidence) -> TextCallCause:
    signs = []
    if clues.known.tools_field == "dropped" and not clues.self_hosted:
        signs.append("Requests have as many tokens with tools as without, and no call came.")
    if clues.siblings:
        signs.append(_describe_native_siblings(clues.siblings))
    verdict, evidence = _rate_likelihood(
        signs, _describe_native_calls(clues), "No other place that serves these weights was probed."
    )
    remedy = "Use one of those places, or another method at this one."
    return TextCallCause("provider", "The provider handles tools in its own way", verdict, evidence, remedy)
