"""Tests of the agents' checks: for each check, arguments that fail exactly the listed ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from toolbench.evals.agents.checks import load_agent_checks, run_agent_checks

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "agent_checks.json").read_text("utf-8"))


def held(agent: str, arguments: dict[str, Any]) -> list[bool]:
    return [check.ok for check in run_agent_checks(agent, arguments, GOLDEN["known"])]


def test_every_check_of_the_explanation_is_there() -> None:
    counts = {agent: sum(row.agent == agent for row in load_agent_checks()) for agent in GOLDEN["right"]}
    assert counts == {"intent": 4, "table": 4, "column": 3, "sql": 3}


@pytest.mark.parametrize("agent", GOLDEN["right"])
def test_right_arguments_hold_every_check(agent: str) -> None:
    assert all(held(agent, GOLDEN["right"][agent]))


@pytest.mark.parametrize("row", GOLDEN["wrong"], ids=lambda row: f"{row['agent']}-{row['fails']}")
def test_wrong_arguments_break_the_checks_of_the_table_and_no_others(row: dict[str, Any]) -> None:
    arguments = {**GOLDEN["right"][row["agent"]], **row.get("with", {})}
    arguments.pop(row.get("without", ""), None)
    assert [place for place, ok in enumerate(held(row["agent"], arguments)) if not ok] == row["fails"]


def test_every_check_is_broken_by_some_row() -> None:
    broken = {(row["agent"], place) for row in GOLDEN["wrong"] for place in row["fails"]}
    counts = {agent: sum(row.agent == agent for row in load_agent_checks()) for agent in GOLDEN["right"]}
    assert broken == {(agent, place) for agent, count in counts.items() for place in range(count)}


def test_a_broken_check_names_the_field() -> None:
    wrong = {**GOLDEN["right"]["column"], "irrelevant_columns": "none"}
    broken = [check for check in run_agent_checks("column", wrong, GOLDEN["known"]) if not check.ok]
    assert [check.detail for check in broken] == ["$.irrelevant_columns", "$.irrelevant_columns"]
