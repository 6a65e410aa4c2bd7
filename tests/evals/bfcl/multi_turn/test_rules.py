"""Tests of BFCL's rules for several turns: the first mistake and its message."""

import pytest

from toolbench.evals.bfcl.multi_turn.cases import MultiTurnCase, iter_multi_turn_cases, parse_golden_turns
from toolbench.evals.bfcl.multi_turn.rules import (
    NO_CALL_MISTAKE,
    RESULT_MISTAKE,
    STATE_MISTAKE,
    UNFINISHED_MISTAKE,
    find_mistake,
)


@pytest.fixture(scope="module")
def case() -> MultiTurnCase:
    return next(iter_multi_turn_cases(["multi_turn_base"]))


def test_every_kind_of_mistake_is_told_with_its_turn_and_its_place(case: MultiTurnCase) -> None:
    first, second, *others = parse_golden_turns(case)

    assert find_mistake(case, (first, second, *others)) is None
    left_out = find_mistake(case, (first[:-1], second, *others))
    assert left_out is not None
    assert (left_out.turn, left_out.kind) == (0, STATE_MISTAKE)
    assert left_out.message.startswith("GorillaFileSystem.root.")
    assert left_out.message.endswith("is missing")
    unread = find_mistake(case, (first, second[:-1], *others))
    assert unread is not None
    assert (unread.turn, unread.kind) == (1, RESULT_MISTAKE)
    assert "grep(file_name='final_report.pdf',pattern='budget analysis')" in unread.message
    silent = find_mistake(case, (first, (), *others))
    assert (silent and silent.turn, silent and silent.kind) == (1, NO_CALL_MISTAKE)
    stopped = find_mistake(case, (first, second))
    assert (stopped and stopped.turn, stopped and stopped.kind) == (2, UNFINISHED_MISTAKE)


def test_calls_beside_them_and_results_that_came_before_do_not_matter(case: MultiTurnCase) -> None:
    first, second, *others = parse_golden_turns(case)

    assert find_mistake(case, ((*first, ("no_such_function", {})), (*second, ("pwd", {})), *others)) is None
