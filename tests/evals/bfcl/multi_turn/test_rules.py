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


def test_find_mistake_reports_kind_turn_and_place(case: MultiTurnCase) -> None:
    first, second, *others = parse_golden_turns(case)

    assert find_mistake(case, (first, second, *others)) is None
    missing_call = find_mistake(case, (first[:-1], second, *others))
    assert missing_call is not None
    assert (missing_call.turn, missing_call.kind) == (0, STATE_MISTAKE)
    assert missing_call.message.startswith("GorillaFileSystem.root.")
    assert missing_call.message.endswith("is missing")
    missing_read = find_mistake(case, (first, second[:-1], *others))
    assert missing_read is not None
    assert (missing_read.turn, missing_read.kind) == (1, RESULT_MISTAKE)
    assert "grep(file_name='final_report.pdf',pattern='budget analysis')" in missing_read.message
    no_call = find_mistake(case, (first, (), *others))
    assert (no_call and no_call.turn, no_call and no_call.kind) == (1, NO_CALL_MISTAKE)
    stopped = find_mistake(case, (first, second))
    assert (stopped and stopped.turn, stopped and stopped.kind) == (2, UNFINISHED_MISTAKE)


def test_find_mistake_ignores_additional_calls(case: MultiTurnCase) -> None:
    first, second, *others = parse_golden_turns(case)

    assert find_mistake(case, ((*first, ("no_such_function", {})), (*second, ("pwd", {})), *others)) is None
