import pytest

from toolbench.engine.capabilities.record import Capabilities
from toolbench.evals.causes.text_calls import Clues, causes

SILENT = Capabilities(supports_tool_use=False, tools_field="accepted")
REFUSED = Capabilities(supports_tool_use=False, tools_field="refused")
DROPPED = Capabilities(supports_tool_use=False, tools_field="dropped")
IN_TEXT = Capabilities(supports_tool_use=False, tools_field="accepted", text_format="hermes")


def verdicts(seen: Clues) -> dict[str, str]:
    return {cause.code: cause.verdict for cause in causes(seen)}


@pytest.mark.parametrize(
    ("seen", "likely"),
    [
        (Clues(SILENT, silent_trials=40), {"model"}),
        (Clues(SILENT, silent_siblings=("Elsewhere",)), {"model"}),
        (Clues(REFUSED, silent_siblings=("Elsewhere",)), {"model"}),
        (Clues(REFUSED, siblings=("Elsewhere",), self_hosted=True), {"configuration"}),
        (Clues(DROPPED, siblings=("Elsewhere",)), {"provider"}),
        (Clues(DROPPED, siblings=("Elsewhere",), self_hosted=True), {"configuration"}),
        (Clues(IN_TEXT, dialect="hermes"), {"behaviour"}),
        (Clues(IN_TEXT, silent_trials=40), {"behaviour"}),
        (Clues(Capabilities(), dialect="fenced_json", silent_trials=40), {"behaviour"}),
    ],
)
def test_causes_two_independent_signs_likely(seen: Clues, likely: set[str]) -> None:
    assert {code for code, verdict in verdicts(seen).items() if verdict == "likely"} == likely


@pytest.mark.parametrize(
    ("seen", "possible"),
    [
        (Clues(SILENT), {"model"}),
        (Clues(Capabilities(), silent_trials=40), {"model"}),
        (Clues(REFUSED), {"model", "configuration"}),
        (Clues(DROPPED), {"provider"}),
        (Clues(DROPPED, self_hosted=True), {"configuration"}),
        (Clues(IN_TEXT), {"behaviour"}),
        (Clues(Capabilities(), dialect="hermes"), {"behaviour"}),
        (Clues(Capabilities(), dialect="hermes", self_hosted=True), {"behaviour", "configuration"}),
        (Clues(Capabilities(), siblings=("Elsewhere",)), {"provider"}),
        (Clues(Capabilities(supports_tool_use=True), dialect="hermes"), {"behaviour"}),
    ],
)
def test_causes_one_sign_possible_and_never_likely(seen: Clues, possible: set[str]) -> None:
    found = verdicts(seen)
    assert {code for code, verdict in found.items() if verdict == "possible"} == possible
    assert "likely" not in found.values()


def test_causes_structured_call_rules_out_what_was_inferred() -> None:
    seen = Clues(
        Capabilities(supports_tool_use=True, tools_field="dropped", text_format="hermes"),
        siblings=("Elsewhere",),
        silent_siblings=("There",),
        self_hosted=True,
    )
    assert set(verdicts(seen).values()) == {"ruled out"}


def test_a_model_that_calls_natively_elsewhere_can_call_tools() -> None:
    seen = Clues(Capabilities(supports_tool_use=False, tools_field="accepted"), siblings=("Elsewhere",))

    assert verdicts(seen)["model"] == "ruled out"


def test_without_evidence_every_verdict_is_unknown_and_every_cause_has_a_remedy() -> None:
    found = causes(Clues(Capabilities()))

    assert [cause.verdict for cause in found] == ["unknown"] * 4
    assert all(cause.remedy.endswith(".") and cause.evidence.endswith(".") for cause in found)


@pytest.mark.parametrize(
    "clues", [Clues(Capabilities(), dialect="hermes"), Clues(Capabilities(text_format="hermes"))], ids=["seen", "known"]
)
def test_a_dialect_seen_or_known_names_its_parser_and_its_preset(clues: Clues) -> None:
    found = {cause.code: cause for cause in causes(clues)}
    assert (found["model"].verdict, "in the text format hermes." in found["model"].evidence) == ("ruled out", True)
    assert "tool parser for hermes," in found["configuration"].remedy
    assert found["behaviour"].remedy.startswith("The preset content_tag_tool_call_fallback reads it")


def test_remedies_name_no_dialect_where_none_was_seen() -> None:
    found = {cause.code: cause for cause in causes(Clues(Capabilities()))}
    assert "tool parser, or" in found["configuration"].remedy
    assert found["behaviour"].remedy.startswith("The method text_json reads it")
