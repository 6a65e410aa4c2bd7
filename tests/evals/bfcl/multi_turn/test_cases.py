"""Tests of reading BFCL's multi-turn cases."""

import json
from dataclasses import asdict

from toolbench.evals.bfcl.multi_turn.cases import (
    MULTI_TURN_CATEGORIES,
    MultiTurnCase,
    iter_multi_turn_cases,
    parse_golden_turns,
)


def test_multi_turn_cases_are_complete_and_survive_json() -> None:
    cases = list(iter_multi_turn_cases())

    assert [sum(case.category == category for case in cases) for category in MULTI_TURN_CATEGORIES] == [200] * 4
    assert all(len(case.messages) == len(case.answers) for case in cases)
    case_with_later_tools = next(case for case in cases if case.later)
    assert MultiTurnCase.from_json(json.loads(json.dumps(asdict(case_with_later_tools)))) == case_with_later_tools


def test_multi_turn_case_later_function_is_added_at_its_message() -> None:
    case = next(iter_multi_turn_cases(["multi_turn_miss_func"]))
    ((number, names),) = case.later.items()

    assert not set(names) & {tool["function"]["name"] for tool in case.tools}
    assert [tool["function"]["name"] for tool in case.build_added_tools(int(number))] == names
    assert case.messages[int(number)].startswith("I have updated some more functions")


def test_parse_golden_turns_names_positional_arguments() -> None:
    case = next(iter_multi_turn_cases(["multi_turn_base"]))
    assert case.answers[2] == ("sort('final_report.pdf')",)
    assert parse_golden_turns(case)[2] == (("sort", {"file_name": "final_report.pdf"}),)
