import pytest

from toolbench.engine.capabilities.record import Capabilities
from toolbench.evals.causes.text_calls import TextCallEvidence, assess_text_call_causes

SILENT = Capabilities(supports_tool_use=False, tools_field="accepted")
REFUSED = Capabilities(supports_tool_use=False, tools_field="refused")
DROPPED = Capabilities(supports_tool_use=False, tools_field="dropped")
IN_TEXT = Capabilities(supports_tool_use=False, tools_field="accepted", text_format="hermes")


def rate_causes(facts: TextCallEvidence) -> dict[str, str]:
    return {cause.code: cause.likelihood for cause in assess_text_call_causes(facts)}


@pytest.mark.parametrize(
    ("facts", "likely"),
    [
        (TextCallEvidence(SILENT, silent_trials=40), {"model"}),
        (TextCallEvidence(SILENT, silent_providers=("Elsewhere",)), {"model"}),
        (TextCallEvidence(REFUSED, silent_providers=("Elsewhere",)), {"model"}),
        (TextCallEvidence(REFUSED, native_providers=("Elsewhere",), self_hosted=True), {"configuration"}),
        (TextCallEvidence(DROPPED, native_providers=("Elsewhere",)), {"provider"}),
        (TextCallEvidence(DROPPED, native_providers=("Elsewhere",), self_hosted=True), {"configuration"}),
        (TextCallEvidence(IN_TEXT, text_format="hermes"), {"behaviour"}),
        (TextCallEvidence(IN_TEXT, silent_trials=40), {"behaviour"}),
        (TextCallEvidence(Capabilities(), text_format="fenced_json", silent_trials=40), {"behaviour"}),
    ],
)
def test_assess_text_call_causes_two_signs_are_likely(facts: TextCallEvidence, likely: set[str]) -> None:
    assert {code for code, verdict in rate_causes(facts).items() if verdict == "likely"} == likely


@pytest.mark.parametrize(
    ("facts", "possible"),
    [
        (TextCallEvidence(SILENT), {"model"}),
        (TextCallEvidence(Capabilities(), silent_trials=40), {"model"}),
        (TextCallEvidence(REFUSED), {"model", "configuration"}),
        (TextCallEvidence(DROPPED), {"provider"}),
        (TextCallEvidence(DROPPED, self_hosted=True), {"configuration"}),
        (TextCallEvidence(IN_TEXT), {"behaviour"}),
        (TextCallEvidence(Capabilities(), text_format="hermes"), {"behaviour"}),
        (TextCallEvidence(Capabilities(), text_format="hermes", self_hosted=True), {"behaviour", "configuration"}),
        (TextCallEvidence(Capabilities(), native_providers=("Elsewhere",)), {"provider"}),
        (TextCallEvidence(Capabilities(supports_tool_use=True), text_format="hermes"), {"behaviour"}),
    ],
)
def test_assess_text_call_causes_one_sign_is_possible(facts: TextCallEvidence, possible: set[str]) -> None:
    found = rate_causes(facts)
    assert {code for code, verdict in found.items() if verdict == "possible"} == possible
    assert "likely" not in found.values()


def test_assess_text_call_causes_structured_call_rules_out_all() -> None:
    facts = TextCallEvidence(
        Capabilities(supports_tool_use=True, tools_field="dropped", text_format="hermes"),
        native_providers=("Elsewhere",),
        silent_providers=("There",),
        self_hosted=True,
    )
    assert set(rate_causes(facts).values()) == {"ruled out"}


def test_assess_text_call_causes_native_calls_elsewhere_clear_the_model() -> None:
    facts = TextCallEvidence(
        Capabilities(supports_tool_use=False, tools_field="accepted"), native_providers=("Elsewhere",)
    )

    assert rate_causes(facts)["model"] == "ruled out"


def test_assess_text_call_causes_no_evidence_is_unknown_with_remedies() -> None:
    found = assess_text_call_causes(TextCallEvidence(Capabilities()))

    assert [cause.likelihood for cause in found] == ["unknown"] * 4
    assert all(cause.remedy.endswith(".") and cause.evidence.endswith(".") for cause in found)


@pytest.mark.parametrize(
    "facts",
    [TextCallEvidence(Capabilities(), text_format="hermes"), TextCallEvidence(Capabilities(text_format="hermes"))],
    ids=["seen", "known"],
)
def test_assess_text_call_causes_known_format_names_parser_and_preset(facts: TextCallEvidence) -> None:
    found = {cause.code: cause for cause in assess_text_call_causes(facts)}
    assert (found["model"].likelihood, "in the text format hermes." in found["model"].evidence) == ("ruled out", True)
    assert "tool parser for hermes," in found["configuration"].remedy
    assert found["behaviour"].remedy.startswith("Use the preset content_tag_tool_call_fallback, which reads")


def test_assess_text_call_causes_unknown_format_names_none() -> None:
    found = {cause.code: cause for cause in assess_text_call_causes(TextCallEvidence(Capabilities()))}
    assert "tool parser, or" in found["configuration"].remedy
    assert found["behaviour"].remedy.startswith("Use the preset text_calls_healed, which reads calls in the text")


def test_assess_text_call_causes_evidence_does_not_deny_silent_providers() -> None:
    facts = TextCallEvidence(SILENT, silent_providers=("Elsewhere",))
    found = {cause.code: cause for cause in assess_text_call_causes(facts)}
    assert found["provider"].evidence == "The same weights are not known to call natively at another provider."
