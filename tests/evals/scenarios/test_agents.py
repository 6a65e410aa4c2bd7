"""Tests of verdicts on the four agents, each alone and as a chain, which names the first wrong agent."""

from typing import Any

import pytest

from tests.evals.manual_trial import ManualTrial
from tests.evals.records import (
    build_calling_turn,
    build_ended,
    build_failed_turn,
    build_right_arguments,
    build_text_turn,
)
from toolbench.engine.events import EndReason, ExchangeError, LoopResult, ToolResult
from toolbench.engine.tools.lint import lint_tools
from toolbench.engine.tools.validation import list_schema_errors
from toolbench.evals import scenarios
from toolbench.evals.agents.verdict import AGENT_ORDER, TOOL_BY_AGENT
from toolbench.evals.types import DRAWN

AGENTS = [scenario for scenario in scenarios.list_scenarios() if scenario.group == "agents"]


def trial_of(agent: str, seed: int = 3) -> ManualTrial:
    return ManualTrial(f"agent_{agent}", DRAWN, seed)


def called(trial: ManualTrial, agent: str, **changed: Any) -> ToolResult:
    return trial.call(TOOL_BY_AGENT[agent], **{**build_right_arguments(agent, trial.values), **changed})


def alone(trial: ManualTrial, agent: str, **changed: Any) -> LoopResult:
    return build_ended(build_calling_turn(0, called(trial, agent, **changed)), end=EndReason.MAX_TURNS_EXCEEDED)


def chain(trial: ManualTrial, **changed: dict[str, Any]) -> LoopResult:
    turns = [
        build_calling_turn(turn, called(trial, agent, **changed.get(agent, {})))
        for turn, agent in enumerate(AGENT_ORDER)
    ]
    return build_ended(*turns, build_text_turn(4, "It is finished."))


@pytest.mark.parametrize("scenario", AGENTS, ids=lambda one: one.slug)
def test_agent_instances_number_twenty_with_clean_tools_and_valid_calls(scenario: Any) -> None:
    drawn = [scenario.draw_instance(seed) for seed in range(40)]
    assert len({instance.user_text for instance in drawn}) >= 20
    for instance in drawn[:6]:
        assert lint_tools(instance.tools) == ()
        tools = {tool.name: tool for tool in instance.tools}
        for agent in scenario.agents:
            assert list_schema_errors(tools[TOOL_BY_AGENT[agent]], build_right_arguments(agent, instance.values)) == ()


@pytest.mark.parametrize("agent", AGENT_ORDER)
def test_a_right_agent_passes_in_one_request(agent: str) -> None:
    for seed in range(12):
        trial = trial_of(agent, seed)
        record = alone(trial, agent)
        verdict = trial.judge(record)
        assert (verdict.outcome, verdict.sentence, len(record.turns)) == ("pass", "", trial.scenario.straight_requests)
        assert verdict.counts[f"{agent}_checks"] == verdict.counts[f"{agent}_checks_held"]


@pytest.mark.parametrize(
    ("agent", "changed", "kind", "path"),
    [
        ("intent", {"workspace_id": "housing"}, "wrong_arguments", "$.workspace_id"),
        ("table", {"relevant_tables": []}, "wrong_arguments", "$.relevant_tables"),
        ("table", {"relevant_tables": ["journeys"]}, "wrong_arguments", "$.relevant_tables"),
        ("column", {"relevant_columns": []}, "wrong_arguments", "$.relevant_columns"),
        ("column", {"irrelevant_columns": ["trips.colour"]}, "wrong_arguments", "$.irrelevant_columns"),
        ("sql", {"sql_query": "SELECT 1"}, "wrong_sql", "$.sql_query"),
        ("sql", {"sql_query": "DROP TABLE trips"}, "wrong_sql", "$.sql_query"),
        ("sql", {"tables_used": ["tenants"]}, "wrong_arguments", "$.tables_used"),
        ("sql", {"tables_used": 5}, "wrong_arguments", "$.tables_used"),
    ],
)
def test_a_wrong_agent_is_named_with_the_place(agent: str, changed: dict[str, Any], kind: str, path: str) -> None:
    trial = next(
        item for item in map(lambda seed: trial_of(agent, seed), range(30)) if item.values["tables"] == ["trips"]
    )
    verdict = trial.judge(alone(trial, agent, **changed))
    assert (verdict.outcome, verdict.failure_class) == ("fail", kind)
    assert verdict.first_bad is not None
    assert verdict.first_bad.path == path
    assert verdict.sentence.startswith(f"Turn 1, parsed call 1: the {agent} agent is wrong at {path}")


@pytest.mark.parametrize("agent", AGENT_ORDER)
def test_words_two_calls_and_a_dead_endpoint_pass_nothing(agent: str) -> None:
    trial = trial_of(agent)
    assert trial.judge(build_ended(build_text_turn(0, "It is mobility."))).failure_class == "no_tool_calls"
    twice = build_calling_turn(0, called(trial, agent), called(trial, agent))
    assert trial.judge(build_ended(twice, end=EndReason.MAX_TURNS_EXCEEDED)).failure_class == "too_many_calls"
    dead = ExchangeError("connection_refused", "Nobody listens.", None)
    assert (
        trial.judge(build_ended(build_failed_turn(0, dead), end=EndReason.PROVIDER_ERROR, error=dead)).outcome
        == "infra"
    )


def test_a_right_chain_passes_and_a_shorter_one_does_not() -> None:
    for seed in range(6):
        trial = trial_of("chain", seed)
        record = chain(trial)
        verdict = trial.judge(record)
        assert (verdict.outcome, len(record.turns)) == ("pass", trial.scenario.straight_requests)
        assert verdict.counts["wrong_after_the_first"] == 0
        short = build_ended(*record.turns[:3], build_text_turn(3, "It is finished."))
        assert trial.judge(short).failure_class == "missing_call"


def test_a_wrong_answer_enters_the_next_agent() -> None:
    trial = trial_of("chain")
    other = "energy" if trial.values["workspace_id"] != "energy" else "housing"
    told = trial.workspace.call("classify_intent", {"workspace_id": other}, "c1")
    assert isinstance(told, dict)
    assert set(told["tables"]).isdisjoint(trial.values["tables"])
    asked = trial.workspace.call("select_tables", {"relevant_tables": [*told["tables"][:1], "nothing"]}, "c2")
    assert isinstance(asked, dict)
    assert (list(asked["columns"]), asked["unknown"]) == (told["tables"][:1], ["nothing"])


def test_where_a_chain_went_wrong_first_is_named_with_what_followed() -> None:
    trial = trial_of("chain")
    other = "energy" if trial.values["workspace_id"] != "energy" else "housing"
    record = chain(trial, intent={"workspace_id": other}, table={"relevant_tables": []}, sql={"sql_query": "SELECT 1"})
    verdict = trial.judge(record)
    assert (verdict.failure_class, verdict.counts["wrong_after_the_first"]) == ("wrong_arguments", 2)
    assert verdict.sentence.startswith("Turn 1, parsed call 1: the intent agent is wrong at $.workspace_id")
    assert verdict.sentence.endswith("after it went wrong: table, sql.")
    assert [verdict.counts[f"{agent}_wrong"] for agent in AGENT_ORDER] == [1, 1, 0, 1]


def test_corrected_step_is_right_and_another_order_fails() -> None:
    trial = trial_of("chain")
    wrong = build_calling_turn(0, called(trial, "table", relevant_tables=[]))
    mended = chain(trial)
    assert trial.judge(build_ended(wrong, *mended.turns)).outcome == "pass"
    turns = [build_calling_turn(turn, called(trial, agent)) for turn, agent in enumerate(reversed(AGENT_ORDER))]
    assert trial.judge(build_ended(*turns, build_text_turn(4, "It is finished."))).failure_class == "wrong_order"


def test_a_wrong_agent_before_a_failed_call_is_where_it_went_wrong_first() -> None:
    trial = trial_of("chain")
    other = "energy" if trial.values["workspace_id"] != "energy" else "housing"
    first = build_calling_turn(0, called(trial, "intent", workspace_id=other))
    failed = build_calling_turn(1, trial.call("no_such_tool"))
    verdict = trial.judge(build_ended(first, failed, build_text_turn(2, "It is finished.")))
    assert (verdict.failure_class, verdict.first_bad is not None) == ("wrong_arguments", True)
    assert "the intent agent" in verdict.sentence


@pytest.mark.parametrize(
    ("reached", "changed", "kind"),
    [(4, {"sql": {"sql_query": "SELECT 1", "tables_used": []}}, "wrong_sql"), (2, {}, "missing_call")],
)
def test_a_chain_out_of_turns_names_its_cause_and_not_its_end(reached: int, changed: dict[str, Any], kind: str) -> None:
    trial = trial_of("chain")
    agents = AGENT_ORDER[:reached]
    turns = [
        build_calling_turn(turn, called(trial, agent, **changed.get(agent, {}))) for turn, agent in enumerate(agents)
    ]
    verdict = trial.judge(build_ended(*turns, end=EndReason.MAX_TURNS_EXCEEDED))
    assert (verdict.outcome, verdict.failure_class) == ("fail", kind)
    whole = [build_calling_turn(turn, called(trial, agent)) for turn, agent in enumerate(AGENT_ORDER)]
    assert trial.judge(build_ended(*whole, end=EndReason.MAX_TURNS_EXCEEDED)).failure_class == "max_turns_exceeded"
