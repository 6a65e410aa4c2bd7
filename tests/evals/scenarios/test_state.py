"""Golden verdicts of the scenarios that change a workspace."""

from typing import Any

import pytest

from tests.evals.records import calling, ended, ran, result, saying
from toolbench.engine.events import End, Ended
from toolbench.engine.messages import SchemaError
from toolbench.evals import scenarios
from toolbench.evals.trials import DRAWN, PARITY, Instance, Scenario, Verdict, Workspace


class Trial:
    """One trial of a scenario's parity instance, with its workspace."""

    def __init__(self, slug: str, kind: str = PARITY) -> None:
        self.scenario: Scenario = scenarios.find(slug)
        self.instance: Instance = self.scenario.draw(7, kind=kind)
        self.workspace: Workspace = self.scenario.open(self.instance)
        self.id = self.instance.values["workspace_id"]

    def get(self, **arguments: Any) -> Any:
        return ran(self.workspace, "state_get", {"workspace_id": self.id, **arguments})

    def patch(self, *, path: str | None = None, value: str | None = None) -> Any:
        values = self.instance.values
        operation = {"op": "set", "path": path or f"/draft/{values['key']}", "value": value or values["value"]}
        return ran(self.workspace, "state_patch", {"workspace_id": self.id, "request_id": "r1", "ops": [operation]})

    def judge(self, record: Ended) -> Verdict:
        return self.scenario.judge(self.instance, record, self.workspace)


@pytest.mark.parametrize("kind", [PARITY, DRAWN])
def test_get_patch_done_passes_by_both_rules(kind: str) -> None:
    trial = Trial("happy_path", kind)
    verdict = trial.judge(ended(calling(0, trial.get()), calling(1, trial.patch()), saying(2, "Done.")))
    assert (verdict.outcome, verdict.task_pass, verdict.parity_pass, verdict.failure_class) == ("pass", True, True, "")
    assert (verdict.counts["calls"], verdict.counts["valid_calls"]) == (2, 2)


def test_the_final_word_decides_the_parity_pass_alone() -> None:
    trial = Trial("happy_path")
    verdict = trial.judge(ended(calling(0, trial.get()), calling(1, trial.patch()), saying(2, "All set!")))
    assert (verdict.outcome, verdict.task_pass, verdict.parity_pass) == ("pass", True, False)
    assert verdict.category == "ASSERTION_FAILED"


def test_a_wrong_type_is_said_with_its_path() -> None:
    trial = Trial("type_error_recovery")
    wrong = result(
        "state_patch",
        {"request_id": "r1", "ops": {"op": "set"}},
        code="SCHEMA_VALIDATION_ERROR",
        schema_errors=[SchemaError("$.ops", "type", 'the value is not of type "array"')],
    )
    verdict = trial.judge(ended(calling(0, trial.get()), calling(1, wrong), saying(2, "Done."), end=End.TOOL_ERROR))
    assert verdict.sentence == "Turn 2, parsed call 1: $.ops is an object; state_patch takes an array."
    assert (verdict.failure_class, verdict.category) == ("arguments_break_schema", "TOOL_ERROR")
    assert verdict.first_bad is not None
    assert (verdict.first_bad.turn, verdict.first_bad.call, verdict.first_bad.path) == (1, 0, "$.ops")
    assert verdict.behaviour_seen is True
