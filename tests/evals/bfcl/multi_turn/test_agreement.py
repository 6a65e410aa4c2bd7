"""Tests of the multi-turn rules against BFCL's checker on a sample; `manage.py check_bfcl` compares every case."""

from itertools import islice

from toolbench.evals.bfcl.multi_turn.agreement import compare_with_checker
from toolbench.evals.bfcl.multi_turn.cases import MULTI_TURN_CATEGORIES, iter_multi_turn_cases


def test_multi_turn_rules_agree_with_bfcl_checker_on_changed_answers() -> None:
    found = compare_with_checker(islice(iter_multi_turn_cases(), 0, None, 130), stride=9)

    assert [item for item in found if not item.agrees] == []
    assert {item.category for item in found} == set(MULTI_TURN_CATEGORIES)
    assert all(item.toolbench_accepts for item in found if item.kind == "golden")
    assert 0 < sum(item.checker_accepts for item in found) < len(found)
