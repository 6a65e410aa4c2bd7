"""Our rules for several turns against BFCL's own checker, on a sample; `manage.py check_bfcl` takes every case."""

from itertools import islice

from toolbench.evals.bfcl.multi_turn.agreement import compare_with_checker
from toolbench.evals.bfcl.multi_turn.cases import MULTI_TURN_CATEGORIES, iter_multi_turn_cases


def test_our_rules_and_bfcls_checker_say_the_same_of_golden_and_of_changed_conversations() -> None:
    found = compare_with_checker(islice(iter_multi_turn_cases(), 0, None, 130), every=9)

    assert [one for one in found if not one.agrees] == []
    assert {one.category for one in found} == set(MULTI_TURN_CATEGORIES)
    assert all(one.toolbench_accepts for one in found if one.kind == "golden")
    assert 0 < sum(one.checker_accepts for one in found) < len(found)
