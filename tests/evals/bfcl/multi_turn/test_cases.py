"""BFCL's multi-turn cases as they are read."""

import json
from dataclasses import asdict

from toolbench.evals.bfcl.multi_turn.cases import CATEGORIES, MultiTurnCase, golden_turns, multi_turn_cases


def test_all_cases_are_there_and_survive_being_stored() -> None:
    every = list(multi_turn_cases())

    assert [sum(case.category == category for case in every) for category in CATEGORIES] == [200] * 4
    assert all(len(case.messages) == len(case.answers) for case in every)
    held_back = next(case for case in every if case.later)
    assert MultiTurnCase.of(json.loads(json.dumps(asdict(held_back)))) == held_back


def test_a_function_that_comes_later_is_offered_from_its_message_on() -> None:
    case = next(multi_turn_cases(["multi_turn_miss_func"]))
    ((number, names),) = case.later.items()

    assert not set(names) & {tool["function"]["name"] for tool in case.tools}
    assert [tool["function"]["name"] for tool in case.tools_with(int(number))] == names
    assert case.messages[int(number)].startswith("I have updated some more functions")


def test_what_bfcl_passes_by_place_gets_its_name() -> None:
    case = next(multi_turn_cases(["multi_turn_base"]))
    assert case.answers[2] == ("sort('final_report.pdf')",)
    assert golden_turns(case)[2] == (("sort", {"file_name": "final_report.pdf"}),)
