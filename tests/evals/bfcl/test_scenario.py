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


def test_bfcl_scenario_fails_call_with_unreadable_arguments() -> None:
    unread = build_result("sky_look", "{", parse_status="invalid_json", code="ARGUMENTS_JSON_PARSE_ERROR")
    verdict = judge_answer(unread)
    assert (verdict.outcome, verdict.failure_class) == ("fail", "arguments_not_json")
    assert verdict.checks[0].detail == "the arguments cannot be read"


def test_bfcl_scenario_accepts_what_bfcl_accepts_despite_schema_errors() -> None:
    error = SchemaError("$.height", "type", "")
    refused = build_result("sky_look", {"height": 5}, code="ARGUMENT_ERROR", schema_errors=[error])
    assert judge_answer(refused).outcome == "pass"
