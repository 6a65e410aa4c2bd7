"""BFCL's rules for several turns: what differs first, and how it is said."""

import pytest

from toolbench.evals.bfcl.multi_turn.cases import MultiTurnCase, golden_turns, multi_turn_cases
from toolbench.evals.bfcl.multi_turn.rules import NO_CALL, RESULT, STATE, UNFINISHED, mistake


@pytest.fixture(scope="module")
def case() -> MultiTurnCase:
    return next(multi_turn_cases(["multi_turn_base"]))


def test_every_kind_of_mistake_is_told_with_its_turn_and_its_place(case: MultiTurnCase) -> None:
    first, second, *others = golden_turns(case)

    assert mistake(case, (first, second, *others)) is None
    left_out = mistake(case, (first[:-1], second, *others))
    assert left_out is not None
    assert (left_out.turn, left_out.kind) == (0, STATE)
    assert left_out.says.startswith("GorillaFileSystem.root.")
    assert left_out.says.endswith("is missing")
    unread = mistake(case, (first, second[:-1], *others))
    assert unread is not None
    assert (unread.turn, unread.kind) == (1, RESULT)
    assert "grep(file_name='final_report.pdf',pattern='budget analysis')" in unread.says
    silent = mistake(case, (first, (), *others))
    assert (silent and silent.turn, silent and silent.kind) == (1, NO_CALL)
    stopped = mistake(case, (first, second))
    assert (stopped and stopped.turn, stopped and stopped.kind) == (2, UNFINISHED)


def test_calls_beside_them_and_results_that_came_before_do_not_matter(case: MultiTurnCase) -> None:
    first, second, *others = golden_turns(case)

    assert mistake(case, ((*first, ("no_such_function", {})), (*second, ("pwd", {})), *others)) is None
