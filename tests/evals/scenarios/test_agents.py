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


def build_trial(agent: str, seed: int = 3) -> ManualTrial:
    return ManualTrial(f"agent_{agent}", DRAWN, seed)


def run_call(trial: ManualTrial, agent: str, **changed: Any) -> ToolResult:
    return trial.call(TOOL_BY_AGENT[agent], **{**build_right_arguments(agent, trial.values), **changed})


def build_single_call(trial: ManualTrial, agent: str, **changed: Any) -> LoopResult:
    return build_ended(build_calling_turn(0, run_call(trial, agent, **changed)), end=EndReason.MAX_TURNS_EXCEEDED)


def build_chain(trial: ManualTrial, **changed: dict[str, Any]) -> LoopResult:
    turns = [
        build_calling_turn(turn, run_call(trial, agent, **changed.get(agent, {})))
        for turn, agent in enumerate(AGENT_ORDER)
    ]
    return build_ended(*turns, build_text_turn(4, "It is finished."))


@pytest.mark.parametrize("scenario", AGENTS, ids=lambda scenario: scenario.slug)
def test_agent_scenario_has_20_instances_with_valid_tools_and_calls(scenario: Any) -> None:
    drawn = [scenario.draw_instance(seed) for seed in range(40)]
    assert len({instance.user_text for instance in drawn}) >= 20
    for instance in drawn[:6]:
        assert lint_tools(instance.tools) == ()
        tools = {tool.name: tool for tool in instance.tools}
        for agent in scenario.agents:
            assert list_schema_errors(tools[TOOL_BY_AGENT[agent]], build_right_arguments(agent, instance.values)) == ()


@pytest.mark.parametrize("agent", AGENT_ORDER)
def test_agent_scenario_right_call_passes_in_one_request(agent: str) -> None:
    for seed in range(12):
        trial = build_trial(agent, seed)
        record = build_single_call(trial, agent)
        verdict = trial.judge(record)
        assert (verdict.outcome, verdict.sentence, len(record.turns)) == ("pass", "", trial.scenario.min_requests)
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
def test_agent_scenario_wrong_call_names_agent_and_path(
    agent: str, changed: dict[str, Any], kind: str, path: str
) -> None:
    trial = next(
        item for item in map(lambda seed: build_trial(agent, seed), range(30)) if item.values["tables"] == ["trips"]
    )
    verdict = trial.judge(build_single_call(trial, agent, **changed))
    assert (verdict.outcome, verdict.failure_class) == ("fail", kind)
    assert verdict.first_bad is not None
    assert verdict.first_bad.path == path
    assert verdict.sentence.startswith(f"Turn 1, parsed call 1: the {agent} agent is wrong at {path}")


@pytest.mark.parametrize("agent", AGENT_ORDER)
def test_agent_scenario_text_two_calls_or_dead_endpoint_never_pass(agent: str) -> None:
    trial = build_trial(agent)
    assert trial.judge(build_ended(build_text_turn(0, "It is mobility."))).failure_class == "no_tool_calls"
    twice = build_calling_turn(0, run_call(trial, agent), run_call(trial, agent))
    assert trial.judge(build_ended(twice, end=EndReason.MAX_TURNS_EXCEEDED)).failure_class == "too_many_calls"
    dead = ExchangeError("connection_refused", "Nobody listens.", None)
    assert (
        trial.judge(build_ended(build_failed_turn(0, dead), end=EndReason.PROVIDER_ERROR, error=dead)).outcome
        == "infra"
    )


def test_agent_chain_passes_only_with_every_step() -> None:
    for seed in range(6):
        trial = build_trial("chain", seed)
        record = build_chain(trial)
        verdict = trial.judge(record)
        assert (verdict.outcome, len(record.turns)) == ("pass", trial.scenario.min_requests)
        assert verdict.counts["wrong_after_the_first"] == 0
        short = build_ended(*record.turns[:3], build_text_turn(3, "It is finished."))
        assert trial.judge(short).failure_class == "missing_call"


def test_agent_workspace_passes_a_wrong_answer_to_the_next_agent() -> None:
    trial = build_trial("chain")
    other = "energy" if trial.values["workspace_id"] != "energy" else "housing"
    intent_result = trial.workspace.call("classify_intent", {"workspace_id": other}, "c1")
    assert isinstance(intent_result, dict)
    assert set(intent_result["tables"]).isdisjoint(trial.values["tables"])
    table_result = trial.workspace.call(
        "select_tables", {"relevant_tables": [*intent_result["tables"][:1], "nothing"]}, "c2"
    )
    assert isinstance(table_result, dict)
    assert (list(table_result["columns"]), table_result["unknown"]) == (intent_result["tables"][:1], ["nothing"])


def test_agent_chain_names_first_wrong_agent_and_those_after_it() -> None:
    trial = build_trial("chain")
    other = "energy" if trial.values["workspace_id"] != "energy" else "housing"
    record = build_chain(
        trial, intent={"workspace_id": other}, table={"relevant_tables": []}, sql={"sql_query": "SELECT 1"}
    )
    verdict = trial.judge(record)
    assert (verdict.failure_class, verdict.counts["wrong_after_the_first"]) == ("wrong_arguments", 2)
    assert verdict.sentence.startswith("Turn 1, parsed call 1: the intent agent is wrong at $.workspace_id")
    assert verdict.sentence.endswith("; later agents are wrong, too: table, sql.")
    assert [verdict.counts[f"{agent}_wrong"] for agent in AGENT_ORDER] == [1, 1, 0, 1]


def test_agent_chain_corrected_step_passes_and_another_order_fails() -> None:
    trial = build_trial("chain")
    wrong = build_calling_turn(0, run_call(trial, "table", relevant_tables=[]))
    right_chain = build_chain(trial)
    assert trial.judge(build_ended(wrong, *right_chain.turns)).outcome == "pass"
    turns = [build_calling_turn(turn, run_call(trial, agent)) for turn, agent in enumerate(reversed(AGENT_ORDER))]
    assert trial.judge(build_ended(*turns, build_text_turn(4, "It is finished."))).failure_class == "wrong_order"


def test_agent_chain_wrong_agent_comes_before_a_later_failed_call() -> None:
    trial = build_trial("chain")
    other = "energy" if trial.values["workspace_id"] != "energy" else "housing"
    first = build_calling_turn(0, run_call(trial, "intent", workspace_id=other))
    failed = build_calling_turn(1, trial.call("no_such_tool"))
    verdict = trial.judge(build_ended(first, failed, build_text_turn(2, "It is finished.")))
    assert (verdict.failure_class, verdict.first_bad is not None) == ("wrong_arguments", True)
    assert "the intent agent" in verdict.sentence


@pytest.mark.parametrize(
    ("reached", "changed", "kind"),
    [(4, {"sql": {"sql_query": "SELECT 1", "tables_used": []}}, "wrong_sql"), (2, {}, "missing_call")],
)
def test_agent_chain_at_max_turns_names_its_cause_not_its_end(reached: int, changed: dict[str, Any], kind: str) -> None:
    trial = build_trial("chain")
    agents = AGENT_ORDER[:reached]
    turns = [
        build_calling_turn(turn, run_call(trial, agent, **changed.get(agent, {}))) for turn, agent in enumerate(agents)
    ]
    verdict = trial.judge(build_ended(*turns, end=EndReason.MAX_TURNS_EXCEEDED))
    assert (verdict.outcome, verdict.failure_class) == ("fail", kind)
    whole = [build_calling_turn(turn, run_call(trial, agent)) for turn, agent in enumerate(AGENT_ORDER)]
    assert trial.judge(build_ended(*whole, end=EndReason.MAX_TURNS_EXCEEDED)).failure_class == "max_turns_exceeded"
