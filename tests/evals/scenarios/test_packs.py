"""Tests of the packs: number of instances, tool definitions, and the verdicts on right and wrong solutions."""

from typing import Any

import pytest

from tests.evals.manual_trial import ManualTrial
from tests.evals.records import build_calling_turn, build_ended, build_failed_turn, build_result, build_text_turn
from toolbench.engine.events import EndReason, ExchangeError, LoopResult, ToolResult, TurnRecord
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.lint import lint_tools
from toolbench.engine.tools.validation import list_schema_errors
from toolbench.evals import scenarios
from toolbench.evals.scenarios import packs
from toolbench.evals.types import DRAWN

PACKS = [scenario for scenario in scenarios.list_scenarios() if isinstance(scenario, packs.PackScenario)]
CALLING = [item for item in PACKS if item.group != "restraint"]
ONE_CALL = [item for item in CALLING if item.group not in ("recovery", "parallel")]


def build_trial(slug: str, seed: int = 3) -> ManualTrial:
    return ManualTrial(slug, DRAWN, seed)


def build_right_results(trial: ManualTrial) -> list[ToolResult]:
    return [build_result(call["tool"], call["arguments"]) for call in trial.values["calls"]]


def build_reply(trial: ManualTrial) -> str:
    asks = "Which one is meant?" if trial.instance.scenario == "restraint_missing" else "Here it is."
    return " ".join([asks, *trial.values["reply"]])


def end_trial(trial: ManualTrial, *turns: TurnRecord) -> LoopResult:
    """Return the loop result, with the reply if the task continues after the calls."""
    if turns and trial.instance.layer.get("max_turns") == 1:
        return build_ended(*turns, end=EndReason.MAX_TURNS_EXCEEDED)
    return build_ended(*turns, build_text_turn(len(turns), build_reply(trial)))


def build_fault_turns(trial: ManualTrial) -> list[TurnRecord]:
    """Return the turns whose call has to fail before the right call."""
    scenario = trial.scenario
    assert isinstance(scenario, packs.PackScenario)
    code = scenario.fault_codes[0] if scenario.fault_codes else ""
    failed = build_result(trial.values["calls"][0]["tool"], trial.values["calls"][0]["arguments"], code=code)
    return [build_calling_turn(turn, failed) for turn in range(scenario.min_requests - 2)]


def build_passing_record(trial: ManualTrial) -> LoopResult:
    before = build_fault_turns(trial) if trial.scenario.group == "recovery" else []
    turns = [*before, build_calling_turn(len(before), *build_right_results(trial))] if trial.values["calls"] else []
    return end_trial(trial, *turns)


@pytest.mark.parametrize("scenario", PACKS, ids=lambda scenario: scenario.slug)
def test_pack_scenario_draws_20_or_more_instances(scenario: packs.PackScenario) -> None:
    drawn = [scenario.draw_instance(seed) for seed in range(30)]
    assert len({instance.user_text for instance in drawn}) >= 20
    assert len({instance.system for instance in drawn}) == len(scenario.system)


@pytest.mark.parametrize("scenario", PACKS, ids=lambda scenario: scenario.slug)
def test_pack_scenario_tools_and_expected_calls_are_valid(scenario: packs.PackScenario) -> None:
    for seed in range(5):
        instance = scenario.draw_instance(seed)
        tools = {tool.name: tool for tool in instance.tools}
        assert lint_tools(instance.tools) == ()
        assert [list_schema_errors(tools[call["tool"]], call["arguments"]) for call in instance.values["calls"]] == [
            () for _ in instance.values["calls"]
        ]


@pytest.mark.parametrize("scenario", PACKS, ids=lambda scenario: scenario.slug)
def test_pack_scenario_solution_passes_with_fewest_requests(scenario: packs.PackScenario) -> None:
    for seed in range(3):
        trial = build_trial(scenario.slug, seed)
        record = build_passing_record(trial)
        verdict = trial.judge(record)
        assert (verdict.outcome, verdict.sentence) == ("pass", "")
        assert len(record.turns) == scenario.min_requests
        assert verdict.parity_pass is None


@pytest.mark.parametrize("scenario", PACKS, ids=lambda scenario: scenario.slug)
def test_pack_scenario_failed_exchange_or_blank_answer_never_passes(scenario: packs.PackScenario) -> None:
    dead = ExchangeError("connection_refused", "Nobody listens.", None)
    refusing = ExchangeError("http_400", "No.", 400, infrastructure=False)
    for error, outcome in ((dead, "infra"), (refusing, "fail")):
        record = build_ended(build_failed_turn(0, error), end=EndReason.PROVIDER_ERROR, error=error)
        assert build_trial(scenario.slug).judge(record).outcome == outcome
    assert build_trial(scenario.slug).judge(build_ended(build_text_turn(0, ""))).failure_class == "empty_answer"


@pytest.mark.parametrize("scenario", CALLING, ids=lambda scenario: scenario.slug)
def test_pack_scenario_answer_without_call_is_no_tool_calls(scenario: packs.PackScenario) -> None:
    trial = build_trial(scenario.slug)
    assert trial.judge(build_ended(build_text_turn(0, build_reply(trial)))).failure_class == "no_tool_calls"


def change_first_leaf(value: Any) -> Any:
    """Return the value with its first leaf changed."""
    if isinstance(value, dict):
        key = next(iter(value))
        return {**value, key: change_first_leaf(value[key])}
    if isinstance(value, list):
        return [change_first_leaf(value[0]), *value[1:]]
    return value + 1 if isinstance(value, int) else "something else"


@pytest.mark.parametrize("scenario", CALLING, ids=lambda scenario: scenario.slug)
def test_pack_scenario_wrong_value_is_named_with_its_path(scenario: packs.PackScenario) -> None:
    trial = build_trial(scenario.slug)
    call, *others = trial.values["calls"]
    rest = [build_result(item["tool"], item["arguments"]) for item in others]
    wrong = build_calling_turn(0, build_result(call["tool"], change_first_leaf(call["arguments"])), *rest)
    verdict = trial.judge(end_trial(trial, wrong))
    assert (verdict.outcome, verdict.failure_class) == ("fail", "wrong_arguments")
    assert verdict.first_bad is not None
    assert verdict.first_bad.path.startswith(f"$.{next(iter(call['arguments']))}")


@pytest.mark.parametrize("scenario", ONE_CALL, ids=lambda scenario: scenario.slug)
def test_pack_scenario_wrong_tool_and_extra_call_have_their_classes(scenario: packs.PackScenario) -> None:
    trial = build_trial(scenario.slug)
    right = build_right_results(trial)
    other = next(tool for tool in trial.instance.tools if tool.name != right[0].call.name)
    assert (
        trial.judge(end_trial(trial, build_calling_turn(0, build_result(other.name, {})))).failure_class == "wrong_tool"
    )
    assert trial.judge(end_trial(trial, build_calling_turn(0, *right, *right))).failure_class == "too_many_calls"


@pytest.mark.parametrize("slug", [item.slug for item in PACKS if item.group == "restraint"])
def test_restraint_pack_call_is_needless(slug: str) -> None:
    trial = build_trial(slug)
    record = build_ended(
        build_calling_turn(0, build_result("set_alarm", {"hour": 7})), build_text_turn(1, build_reply(trial))
    )
    assert trial.judge(record).failure_class == "needless_call"


@pytest.mark.parametrize("slug", ["restraint_plain", "restraint_missing", "restraint_answered", "recovery_none"])
def test_pack_scenario_reply_without_expected_words_is_wrong(slug: str) -> None:
    trial = build_trial(slug)
    turns = [build_calling_turn(0, *build_right_results(trial))] if trial.values["calls"] else []
    assert trial.judge(build_ended(*turns, build_text_turn(len(turns), "All is well."))).failure_class == "wrong_reply"


def test_parallel_pack_sequential_or_missing_calls_fail() -> None:
    trial = build_trial("parallel_same")
    turns = [build_calling_turn(turn, item) for turn, item in enumerate(build_right_results(trial))]
    assert trial.judge(build_ended(*turns, end=EndReason.MAX_TURNS_EXCEEDED)).failure_class == "not_parallel"
    short = build_trial("parallel_mixed")
    incomplete = end_trial(short, build_calling_turn(0, *build_right_results(short)[:2]))
    assert short.judge(incomplete).failure_class == "missing_call"


@pytest.mark.parametrize("slug", ["recovery_busy", "recovery_crash", "recovery_slow", "recovery_unserializable"])
def test_recovery_pack_end_after_the_fault_is_gave_up_after_error(slug: str) -> None:
    trial = build_trial(slug)
    verdict = trial.judge(end_trial(trial, *build_fault_turns(trial)))
    assert (verdict.failure_class, verdict.behaviour_seen) == ("gave_up_after_error", True)


def test_recovery_oversized_small_request_avoids_the_large_result() -> None:
    trial = build_trial("recovery_oversized")
    call = trial.values["calls"][0]
    few = build_calling_turn(0, build_result("list_orders", {**call["arguments"], "limit": 3}))
    verdict = trial.judge(end_trial(trial, few))
    assert (verdict.outcome, verdict.behaviour_seen, verdict.avoided) == ("pass", False, True)


@pytest.mark.parametrize("count", [5, 20, 60, 128])
def test_tool_count_pack_offers_near_duplicates_of_the_right_tool(count: int) -> None:
    for seed in range(10):
        trial = build_trial(f"tool_count_{count}", seed)
        names = [tool.name for tool in trial.instance.tools]
        right = trial.values["calls"][0]["tool"]
        noun = right.partition("_")[2]
        assert (len(set(names)), right in names) == (count, True)
        assert any(noun in name for name in names if name != right)


def test_long_context_pack_has_the_needed_line_once() -> None:
    for lines in (20, 150, 600, 1900):
        instance = build_trial(f"long_context_{lines}").instance
        name = f"{instance.values['first']} {instance.values['last']}"
        assert len(instance.user_text.splitlines()) == lines + 2
        assert instance.user_text.count(f"The parcel for {name} lies in locker {instance.values['number']}.") == 1
        assert instance.user_text.count(f"The parcel for {name} lies") == 1


def test_recovery_slow_tools_have_a_time_limit_and_others_none() -> None:
    def find_limit(tool: ToolDefinition) -> float | None:
        return tool.timeout_seconds

    assert [find_limit(tool) for tool in build_trial("recovery_slow").instance.tools] == [0.2, 0.2]
    assert [find_limit(tool) for tool in build_trial("recovery_none").instance.tools] == [None, None]
