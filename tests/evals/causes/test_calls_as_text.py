import pytest

from toolbench.engine.capabilities.record import Capabilities
from toolbench.evals.causes.calls_as_text import Clues, causes


def verdicts(seen: Clues) -> dict[str, str]:
    return {cause.code: cause.verdict for cause in causes(seen)}


@pytest.mark.parametrize(
    ("seen", "likely"),
    [
        (Clues(Capabilities(supports_tool_use=False, tools_field="accepted")), {"model"}),
        (Clues(Capabilities(supports_tool_use=False, tools_field="refused")), {"configuration"}),
        (Clues(Capabilities(supports_tool_use=False, tools_field="dropped")), {"provider"}),
        (Clues(Capabilities(supports_tool_use=False, tools_field="dropped"), self_hosted=True), {"configuration"}),
        (Clues(Capabilities(), dialect="fenced_json"), {"behaviour"}),
        (Clues(Capabilities(), dialect="hermes", self_hosted=True), {"behaviour", "configuration"}),
        (Clues(Capabilities(), dialect="hermes", siblings=("Elsewhere",)), {"behaviour", "provider"}),
        (Clues(Capabilities()), set()),
        (Clues(Capabilities(supports_tool_use=True)), set()),
    ],
)
def test_the_likely_causes_are_those_with_evidence(seen: Clues, likely: set[str]) -> None:
    assert {code for code, verdict in verdicts(seen).items() if verdict == "likely"} == likely


def test_a_model_that_calls_natively_elsewhere_can_call_tools() -> None:
    seen = Clues(Capabilities(supports_tool_use=False, tools_field="accepted"), siblings=("Elsewhere",))

    assert verdicts(seen)["model"] == "ruled out"


def test_without_evidence_every_verdict_is_unknown_and_every_cause_has_a_remedy() -> None:
    found = causes(Clues(Capabilities()))

    assert [cause.verdict for cause in found] == ["unknown"] * 4
    assert all(cause.remedy.endswith(".") and cause.evidence.endswith(".") for cause in found)
