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


def trial_of(slug: str, seed: int = 3) -> ManualTrial:
    return ManualTrial(slug, DRAWN, seed)


def solution(trial: ManualTrial) -> list[ToolResult]:
    return [build_result(call["tool"], call["arguments"]) for call in trial.values["calls"]]


def reply(trial: ManualTrial) -> str:
    asks = "Which one is meant?" if trial.instance.scenario == "restraint_missing" else "Here it is."
    return " ".join([asks, *trial.values["reply"]])


def finished(trial: ManualTrial, *turns: TurnRecord) -> LoopResult:
    """With the reply where the task goes on after the calls."""
    if turns and trial.instance.layer.get("max_turns") == 1:
        return build_ended(*turns, end=EndReason.MAX_TURNS_EXCEEDED)
    return build_ended(*turns, build_text_turn(len(turns), reply(trial)))


def faulty(trial: ManualTrial) -> list[TurnRecord]:
    """The calls that have to fail before the right one."""
    scenario = trial.scenario
    assert isinstance(scenario, packs.PackScenario)
    code = scenario.fault_codes[0] if scenario.fault_codes else ""
    failed = build_result(trial.values["calls"][0]["tool"], trial.values["calls"][0]["arguments"], code=code)
    return [build_calling_turn(turn, failed) for turn in range(scenario.straight_requests - 2)]


def passing(trial: ManualTrial) -> LoopResult:
    before = faulty(trial) if trial.scenario.group == "recovery" else []
    turns = [*before, build_calling_turn(len(before), *solution(trial))] if trial.values["calls"] else []
    return finished(trial, *turns)


@pytest.mark.parametrize("scenario", PACKS, ids=lambda one: one.slug)
def test_there_are_twenty_instances_and_more(scenario: packs.PackScenario) -> None:
    drawn = [scenario.draw_instance(seed) for seed in range(30)]
    assert len({instance.user_text for instance in drawn}) >= 20
    assert len({instance.system for instance in drawn}) == len(scenario.system)


@pytest.mark.parametrize("scenario", PACKS, ids=lambda one: one.slug)
def test_pack_tools_have_no_lint_findings_and_expected_calls_are_valid(scenario: packs.PackScenario) -> None:
    for seed in range(5):
        instance = scenario.draw_instance(seed)
        tools = {tool.name: tool for tool in instance.tools}
        assert lint_tools(instance.tools) == ()
        assert [list_schema_errors(tools[call["tool"]], call["arguments"]) for call in instance.values["calls"]] == [
            () for _ in instance.values["calls"]
        ]


@pytest.mark.parametrize("scenario", PACKS, ids=lambda one: one.slug)
def test_pack_solution_passes_with_fewest_requests(scenario: packs.PackScenario) -> None:
    for seed in range(3):
        trial = trial_of(scenario.slug, seed)
        record = passing(trial)
        verdict = trial.judge(record)
        assert (verdict.outcome, verdict.sentence) == ("pass", "")
        assert len(record.turns) == scenario.straight_requests
        assert verdict.parity_pass is None


@pytest.mark.parametrize("scenario", PACKS, ids=lambda one: one.slug)
def test_a_dead_a_refusing_and_a_silent_endpoint_pass_nothing(scenario: packs.PackScenario) -> None:
    dead = ExchangeError("connection_refused", "Nobody listens.", None)
    refusing = ExchangeError("http_400", "No.", 400, infrastructure=False)
    for error, outcome in ((dead, "infra"), (refusing, "fail")):
        record = build_ended(build_failed_turn(0, error), end=EndReason.PROVIDER_ERROR, error=error)
        assert trial_of(scenario.slug).judge(record).outcome == outcome
    assert trial_of(scenario.slug).judge(build_ended(build_text_turn(0, ""))).failure_class == "empty_answer"


@pytest.mark.parametrize("scenario", CALLING, ids=lambda one: one.slug)
def test_an_answer_in_words_calls_no_tool(scenario: packs.PackScenario) -> None:
    trial = trial_of(scenario.slug)
    assert trial.judge(build_ended(build_text_turn(0, reply(trial)))).failure_class == "no_tool_calls"


def altered(value: Any) -> Any:
    """The same shape with another value at its first leaf."""
    if isinstance(value, dict):
        key = next(iter(value))
        return {**value, key: altered(value[key])}
    if isinstance(value, list):
        return [altered(value[0]), *value[1:]]
    return value + 1 if isinstance(value, int) else "something else"


@pytest.mark.parametrize("scenario", CALLING, ids=lambda one: one.slug)
def test_a_wrong_value_is_named_with_its_path(scenario: packs.PackScenario) -> None:
    trial = trial_of(scenario.slug)
    call, *others = trial.values["calls"]
    rest = [build_result(item["tool"], item["arguments"]) for item in others]
    wrong = build_calling_turn(0, build_result(call["tool"], altered(call["arguments"])), *rest)
    verdict = trial.judge(finished(trial, wrong))
    assert (verdict.outcome, verdict.failure_class) == ("fail", "wrong_arguments")
    assert verdict.first_bad is not None
    assert verdict.first_bad.path.startswith(f"$.{next(iter(call['arguments']))}")


@pytest.mark.parametrize("scenario", ONE_CALL, ids=lambda one: one.slug)
def test_another_tool_and_one_call_too_many_are_told_apart(scenario: packs.PackScenario) -> None:
    trial = trial_of(scenario.slug)
    right = solution(trial)
    other = next(tool for tool in trial.instance.tools if tool.name != right[0].call.name)
    assert (
        trial.judge(finished(trial, build_calling_turn(0, build_result(other.name, {})))).failure_class == "wrong_tool"
    )
    assert trial.judge(finished(trial, build_calling_turn(0, *right, *right))).failure_class == "too_many_calls"


@pytest.mark.parametrize("slug", [item.slug for item in PACKS if item.group == "restraint"])
def test_a_call_that_nobody_needs_is_needless(slug: str) -> None:
    trial = trial_of(slug)
    record = build_ended(
        build_calling_turn(0, build_result("set_alarm", {"hour": 7})), build_text_turn(1, reply(trial))
    )
    assert trial.judge(record).failure_class == "needless_call"


@pytest.mark.parametrize("slug", ["restraint_plain", "restraint_missing", "restraint_answered", "recovery_none"])
def test_a_reply_that_does_not_say_it_is_wrong(slug: str) -> None:
    trial = trial_of(slug)
    turns = [build_calling_turn(0, *solution(trial))] if trial.values["calls"] else []
    assert trial.judge(build_ended(*turns, build_text_turn(len(turns), "All is well."))).failure_class == "wrong_reply"


def test_calls_one_after_the_other_are_not_parallel() -> None:
    trial = trial_of("parallel_same")
    turns = [build_calling_turn(place, item) for place, item in enumerate(solution(trial))]
    assert trial.judge(build_ended(*turns, end=EndReason.MAX_TURNS_EXCEEDED)).failure_class == "not_parallel"
    short = trial_of("parallel_mixed")
    left_out = finished(short, build_calling_turn(0, *solution(short)[:2]))
    assert short.judge(left_out).failure_class == "missing_call"


@pytest.mark.parametrize("slug", ["recovery_busy", "recovery_crash", "recovery_slow", "recovery_unserializable"])
def test_who_gives_up_after_a_fault_is_seen_to_give_up(slug: str) -> None:
    trial = trial_of(slug)
    verdict = trial.judge(finished(trial, *faulty(trial)))
    assert (verdict.failure_class, verdict.behaviour_seen) == ("gave_up_after_error", True)


def test_who_asks_for_little_at_once_has_avoided_the_large_result() -> None:
    trial = trial_of("recovery_oversized")
    call = trial.values["calls"][0]
    few = build_calling_turn(0, build_result("list_orders", {**call["arguments"], "limit": 3}))
    verdict = trial.judge(finished(trial, few))
    assert (verdict.outcome, verdict.behaviour_seen, verdict.avoided) == ("pass", False, True)


@pytest.mark.parametrize("count", [5, 20, 60, 128])
def test_so_many_tools_are_shown_with_near_duplicates_of_the_right_one(count: int) -> None:
    for seed in range(10):
        trial = trial_of(f"tool_count_{count}", seed)
        names = [tool.name for tool in trial.instance.tools]
        right = trial.values["calls"][0]["tool"]
        noun = right.partition("_")[2]
        assert (len(set(names)), right in names) == (count, True)
        assert any(noun in name for name in names if name != right)


def test_the_line_that_matters_is_there_once() -> None:
    for lines in (20, 150, 600, 1900):
        instance = trial_of(f"long_context_{lines}").instance
        name = f"{instance.values['first']} {instance.values['last']}"
        assert len(instance.user_text.splitlines()) == lines + 2
        assert instance.user_text.count(f"The parcel for {name} lies in locker {instance.values['number']}.") == 1
        assert instance.user_text.count(f"The parcel for {name} lies") == 1


def test_a_slow_tool_has_its_time_and_no_more() -> None:
    def limit(tool: ToolDefinition) -> float | None:
        return tool.timeout_seconds

    assert [limit(tool) for tool in trial_of("recovery_slow").instance.tools] == [0.2, 0.2]
    assert [limit(tool) for tool in trial_of("recovery_none").instance.tools] == [None, None]
