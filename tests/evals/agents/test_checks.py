"""Tests of the agents' checks: for each check, arguments that fail exactly the listed ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from toolbench.evals.agents.checks import load_agent_checks, run_agent_checks

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "agent_checks.json").read_text("utf-8"))


def list_results(agent: str, arguments: dict[str, Any]) -> list[bool]:
    return [check.ok for check in run_agent_checks(agent, arguments, GOLDEN["known"])]


def test_load_agent_checks_has_14_rows_of_four_agents() -> None:
    counts = {agent: sum(row.agent == agent for row in load_agent_checks()) for agent in GOLDEN["right"]}
    assert counts == {"intent": 4, "table": 4, "column": 3, "sql": 3}


@pytest.mark.parametrize("agent", GOLDEN["right"])
def test_run_agent_checks_right_arguments_pass_all(agent: str) -> None:
    assert set(list_results(agent, GOLDEN["right"][agent])) == {True}


@pytest.mark.parametrize("row", GOLDEN["wrong"], ids=lambda row: f"{row['agent']}-{row['fails']}")
def test_run_agent_checks_wrong_arguments_fail_the_listed_ones_only(row: dict[str, Any]) -> None:
    arguments = {**GOLDEN["right"][row["agent"]], **row.get("with", {})}
    arguments.pop(row.get("without", ""), None)
    assert [index for index, ok in enumerate(list_results(row["agent"], arguments)) if not ok] == row["fails"]


def test_load_agent_checks_each_row_fails_for_some_golden_arguments() -> None:
    failed = {(row["agent"], index) for row in GOLDEN["wrong"] for index in row["fails"]}
    counts = {agent: sum(row.agent == agent for row in load_agent_checks()) for agent in GOLDEN["right"]}
    assert failed == {(agent, index) for agent, count in counts.items() for index in range(count)}


def test_run_agent_checks_failed_check_has_path_of_its_field() -> None:
    wrong = {**GOLDEN["right"]["column"], "irrelevant_columns": "none"}
    failed = [check for check in run_agent_checks("column", wrong, GOLDEN["known"]) if not check.ok]
    assert [check.detail for check in failed] == ["$.irrelevant_columns", "$.irrelevant_columns"]
