import pytest

from tests.evals.records import build_calling_turn, build_ended, build_result
from toolbench.engine.events import EndReason, ToolResult
from toolbench.engine.types import JsonObject, SchemaError
from toolbench.evals.bfcl.cases import BfclCase
from toolbench.evals.bfcl.scenario import BfclScenario
from toolbench.evals.types import Verdict

FUNCTION: JsonObject = {
    "name": "sky.look",
    "description": "",
    "parameters": {"type": "dict", "properties": {"height": {"type": "float"}}, "required": []},
}
CASE = BfclCase(
    "simple_0",
    "simple",
    ({"role": "user", "content": "Look up."},),
    (FUNCTION,),
    ({"sky.look": {"height": [5.0, ""]}},),
)


def judge_answer(*results: ToolResult) -> Verdict:
    scenario = BfclScenario("bfcl", 1, "", CASE)
    instance = scenario.draw_instance(0)
    record = build_ended(build_calling_turn(0, *results), end=EndReason.MAX_TURNS_EXCEEDED)
    return scenario.judge(instance, record, scenario.open(instance))


def test_bfcl_scenario_accepts_call_without_its_optional_argument() -> None:
    assert judge_answer(build_result("sky_look", {})).outcome == "pass"


@pytest.mark.parametrize(
    ("code", "parse_status", "failure_class"),
    [
        ("ARGUMENTS_JSON_PARSE_ERROR", "invalid_json", "arguments_not_json"),
        ("ARGUMENTS_TOO_LARGE", "too_large", "arguments_too_large"),
    ],
)
def test_bfcl_scenario_fails_call_with_unreadable_arguments(code: str, parse_status: str, failure_class: str) -> None:
    verdict = judge_answer(build_result("sky_look", "{", parse_status=parse_status, code=code))
    assert (verdict.outcome, verdict.failure_class) == ("fail", failure_class)
    assert verdict.checks[0].detail == "the arguments cannot be read or are too large"


def test_bfcl_scenario_accepts_what_bfcl_accepts_despite_schema_errors() -> None:
    error = SchemaError("$.height", "type", "")
    refused = build_result("sky_look", {"height": 5}, code="ARGUMENT_ERROR", schema_errors=[error])
    assert judge_answer(refused).outcome == "pass"
