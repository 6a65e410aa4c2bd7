"""Tests that cases stored before cases had options keep their text and instance, and get the expected verdicts."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.evals.records import build_calling_turn, build_ended, build_text_turn, run_tool
from toolbench.evals.user_cases.definition import render_case
from toolbench.evals.user_cases.parse import parse_case
from toolbench.evals.user_cases.scenario import UserCaseScenario

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "stored_cases.json").read_text())


@pytest.mark.parametrize("row", ROWS)
def test_stored_case_keeps_its_text_and_its_instance(row: dict[str, Any]) -> None:
    case = parse_case(json.loads(row["definition"]))
    assert render_case(case) == row["definition"]
    scenario = UserCaseScenario("own-x", 1, "X", case)
    assert (scenario.group, scenario.control, scenario.min_requests) == ("own", False, 1)
    assert digest(asdict(scenario.draw_instance(0))) == row["instance"]


@pytest.mark.parametrize("row", ROWS)
def test_stored_case_keeps_its_verdicts(row: dict[str, Any]) -> None:
    case = parse_case(json.loads(row["definition"]))
    assert [judge_trial(case, calls, row["text"]) for calls in row["trials"]] == row["verdicts"]


def judge_trial(case: Any, calls: list[Any], text: str) -> Any:
    scenario = UserCaseScenario("own-x", 1, "X", case)
    instance = scenario.draw_instance(0)
    workspace = scenario.open(instance)
    turns = [
        build_calling_turn(number, run_tool(workspace, name, arguments))
        for number, (name, arguments) in enumerate(calls)
    ]
    loop_result = build_ended(*turns, build_text_turn(len(turns), text))
    verdict = asdict(scenario.judge(instance, loop_result, workspace))
    return [verdict["outcome"], verdict["failure_class"], digest(verdict), digest(workspace.snapshot())]


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
