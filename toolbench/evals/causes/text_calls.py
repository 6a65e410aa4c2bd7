"""The four possible causes of calls in text, each with its likelihood, evidence and a suggested fix.

A cause is likely with two or more signs, possible with one and unknown without any.

A structured call that was received rules out every cause. The exception is that the model writes calls as text: this
cause remains if the examined trial has a call in its text. A call in a text, or native calls at another provider, rule
out that the model does not support tool calling.
"""

from dataclasses import dataclass
from typing import Literal

from toolbench.engine.capabilities.record import Capabilities

Likelihood = Literal["likely", "possible", "ruled out", "unknown"]
NO_EVIDENCE_SENTENCE = "There is no evidence for or against this cause."


@dataclass(frozen=True, slots=True)
class TextCallEvidence:
    """The facts known about a model at its provider.

    Attributes:
        capabilities: The effective capabilities.
        text_format: The text format of the call in the text of the trial that is examined; "" for none.
        native_providers: Names of other providers at which the same canonical model calls natively.
        silent_providers: Names of other providers at which the same canonical model is known not to call natively.
        self_hosted: Whether the user operates the server and can switch on its tool parser.
        silent_trials: The number of trials that needed a call and had no structured one; 0 if some trial had one, or
            there are too few trials.
    """

    capabilities: Capabilities
    text_format: str = ""
    native_providers: tuple[str, ...] = ()
    silent_providers: tuple[str, ...] = ()
    self_hosted: bool = False
    silent_trials: int = 0


@dataclass(frozen=True, slots=True)
class TextCallCause:
    """One possible cause with its likelihood, the evidence and a suggested fix."""

    code: str
    title: str
    likelihood: Likelihood
    evidence: str
    remedy: str


def assess_text_call_causes(facts: TextCallEvidence) -> tuple[TextCallCause, ...]:
    """Return the four causes in this order: model, configuration, behaviour, provider."""
    return (_assess_model(facts), _assess_configuration(facts), _assess_behaviour(facts), _assess_provider(facts))


def _rate_likelihood(signs: list[str], counter_evidence: str, default_evidence: str) -> tuple[Likelihood, str]:
    """Return the likelihood of a cause and its evidence as text.

    Args:
        signs: Sentences that speak for the cause; their number gives the likelihood.
        counter_evidence: A sentence that rules the cause out; "" for none.
        default_evidence: The evidence if there are no signs and no counter-evidence.
    """
    if counter_evidence:
        return "ruled out", counter_evidence
    likelihood: Likelihood = "likely" if len(signs) > 1 else "possible" if signs else "unknown"
    return likelihood, " ".join(signs) or default_evidence


def _describe_native_calls(facts: TextCallEvidence) -> str:
    return "The model's calls arrive in tool_calls." if facts.capabilities.supports_tool_use else ""


def _describe_native_providers(names: tuple[str, ...]) -> str:
    return f"The same weights call natively at {', '.join(names)}." if names else ""


def _assess_model(facts: TextCallEvidence) -> TextCallCause:
    capabilities = facts.capabilities
    text_format = facts.text_format or capabilities.text_format
    written_call = f"The model writes calls, in the text format {text_format}." if text_format else ""
    signs = []
    if capabilities.tools_field == "accepted" and capabilities.supports_tool_use is False:
        signs.append("The model receives the tools but answers in text, even if a call is required.")
    if capabilities.tools_field == "refused":
        signs.append("The endpoint refuses requests with tools for this model.")
    if facts.silent_providers:
        signs.append(f"The same weights do not call at {', '.join(facts.silent_providers)} either.")
    if facts.silent_trials:
        signs.append(f"None of {facts.silent_trials} trials that needed a call had a structured one.")
    counter_evidence = (
        _describe_native_calls(facts) or _describe_native_providers(facts.native_providers) or written_call
    )
    likelihood, evidence = _rate_likelihood(signs, counter_evidence, NO_EVIDENCE_SENTENCE)
    remedy = "Choose another model, or use the method template or constrained."
    return TextCallCause("model", "The model does not support tool calling", likelihood, evidence, remedy)


def _assess_configuration(facts: TextCallEvidence) -> TextCallCause:
    text_format = facts.text_format or facts.capabilities.text_format
    signs = []
    if facts.capabilities.tools_field == "refused":
        signs.append("The endpoint refuses requests with tools.")
    if text_format and facts.self_hosted:
        signs.append(f"This server can be set up to read calls in {text_format}, but passes them on as text.")
    if facts.capabilities.tools_field == "dropped" and facts.self_hosted:
        signs.append("The chat template of this server seems to have no place for tools.")
    if facts.native_providers and facts.self_hosted:
        signs.append(_describe_native_providers(facts.native_providers))
    likelihood, evidence = _rate_likelihood(signs, _describe_native_calls(facts), NO_EVIDENCE_SENTENCE)
    parser = f"tool parser{f' for {text_format}' if text_format else ''}"
    remedy = f"Switch on the server's {parser}, or give it a template with tools."
    return TextCallCause("configuration", "The server is not set up for tool calling", likelihood, evidence, remedy)


def _assess_behaviour(facts: TextCallEvidence) -> TextCallCause:
    text_format = facts.text_format or facts.capabilities.text_format
    signs = []
    if facts.text_format:
        signs.append(f"The text of this trial holds a whole call in the text format {facts.text_format}.")
    if facts.capabilities.text_format:
        signs.append(f"A probe found a call in the text format {facts.capabilities.text_format}.")
    if facts.silent_trials and signs:
        signs.append(f"None of {facts.silent_trials} trials that needed a call had a structured one.")
    counter_evidence = "" if facts.text_format else _describe_native_calls(facts)
    likelihood, evidence = _rate_likelihood(signs, counter_evidence, "No call was found in a text.")
    preset = "content_tag_tool_call_fallback" if text_format == "hermes" else "text_calls_healed"
    remedy = (
        f"Use the preset {preset}, which reads calls in the text; or the method template, which uses the same text "
        "format; or the method constrained, which enforces a format."
    )
    return TextCallCause("behaviour", "The model writes calls as text", likelihood, evidence, remedy)


def _assess_provider(facts: TextCallEvidence) -> TextCallCause:
    signs = []
    if facts.capabilities.tools_field == "dropped" and not facts.self_hosted:
        signs.append("Requests have as many tokens with tools as without, and no call was received.")
    if facts.native_providers:
        signs.append(_describe_native_providers(facts.native_providers))
    likelihood, evidence = _rate_likelihood(
        signs, _describe_native_calls(facts), "The same weights are not known to call natively at another provider."
    )
    remedy = "Use a provider at which the model calls natively, or another method at this one."
    return TextCallCause("provider", "The provider handles tools differently", likelihood, evidence, remedy)
