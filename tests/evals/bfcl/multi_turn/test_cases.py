"""Tests of reading BFCL's multi-turn cases."""

import json
from dataclasses import asdict

from toolbench.evals.bfcl.multi_turn.cases import (
    MULTI_TURN_CATEGORIES,
    MultiTurnCase,
    iter_multi_turn_cases,
    parse_golden_turns,
)


def test_all_cases_are_there_and_survive_being_stored() -> None:
    every = list(iter_multi_turn_cases())

    assert [sum(case.category == category for case in every) for category in MULTI_TURN_CATEGORIES] == [200] * 4
    assert all(len(case.messages) == len(case.answers) for case in every)
    held_back = next(case for case in every if case.later)
    assert MultiTurnCase.from_json(json.loads(json.dumps(asdict(held_back)))) == held_back


def test_a_function_that_comes_later_is_offered_from_its_message_on() -> None:
    case = next(iter_multi_turn_cases(["multi_turn_miss_func"]))
    ((number, names),) = case.later.items()

    assert not set(names) & {tool["function"]["name"] for tool in case.tools}
    assert [tool["function"]["name"] for tool in case.build_added_tools(int(number))] == names
    assert case.messages[int(number)].startswith("I have updated some more functions")


def test_what_bfcl_passes_by_place_gets_its_name() -> None:
    case = next(iter_multi_turn_cases(["multi_turn_base"]))
    assert case.answers[2] == ("sort('final_report.pdf')",)
    assert parse_golden_turns(case)[2] == (("sort", {"file_name": "final_report.pdf"}),)
