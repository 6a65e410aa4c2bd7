"""Test with a sample of BFCL's tool sets; `python -m benchmarks.bfcl_grammars` uses all of them."""

from collections import Counter
from itertools import islice

import pytest

from benchmarks.bfcl_grammars import GRAMMAR_KINDS, MUTATION_KINDS, try_case
from toolbench.evals.bfcl.cases import CATEGORIES, iter_cases

SAMPLE = 8
STRIDE = 7


@pytest.mark.parametrize("name", CATEGORIES)
def test_grammars_of_bfcl_tools_accept_right_and_refuse_wrong_calls(name: str) -> None:
    counts: Counter[str] = Counter()
    problems = [
        problem for case in islice(iter_cases([name]), 0, SAMPLE * STRIDE, STRIDE) for problem in try_case(case, counts)
    ]
    assert problems == []
    assert counts["right"]
    for grammar_kind in GRAMMAR_KINDS:
        assert counts[f"{grammar_kind}: taken"] == counts["right"]
        assert [counts[f"{grammar_kind}: {kind}"] for kind in MUTATION_KINDS] == [
            counts[kind] for kind in MUTATION_KINDS
        ]
