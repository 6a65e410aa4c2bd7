from collections.abc import Sequence
from itertools import permutations, product

import pytest

from toolbench.evals.call_matching import NO_MATCH, match_calls

X = NO_MATCH


def compute_best(costs: Sequence[Sequence[float]], *, ordered: bool) -> tuple[int, float]:
    """Return the largest number of matched calls and the lowest cost with it, by trying every matching."""
    columns = [*range(len(costs[0])), *[None] * len(costs)]
    best = (0, 0.0)
    for chosen in set(permutations(columns, len(costs))):
        used = [column for column in chosen if column is not None]
        pair_costs = [row[column] for row, column in zip(costs, chosen, strict=True) if column is not None]
        if NO_MATCH not in pair_costs and (not ordered or used == sorted(used)):
            best = min(best, (-len(used), sum(pair_costs)))
    return -best[0], best[1]


@pytest.mark.parametrize("ordered", [True, False])
def test_match_calls_finds_most_matches_at_lowest_cost(ordered: bool) -> None:
    for values in product((0.0, 2.0, X), repeat=6):
        for costs in ([values[:3], values[3:]], [values[:2], values[2:4], values[4:]]):
            matches = match_calls(costs, ordered=ordered)
            cost = sum(costs[row][column] for row, column in matches.items())
            assert (len(matches), cost) == compute_best(costs, ordered=ordered)
            assert len(set(matches.values())) == len(matches)
            assert not ordered or list(matches.values()) == sorted(matches.values())


@pytest.mark.parametrize(
    ("costs", "ordered", "matches"),
    [
        ([], False, {}),
        ([[], []], True, {}),
        ([[0.0, 0.0], [X, X]], False, {0: 0}),
        ([[X, 0.0, 0.0, X, X], [X, 0.0, 0.0, X, X], [X, X, X, X, 0.0]], False, {0: 1, 1: 2, 2: 4}),
        ([[0.0, 0.0], [X, X]], True, {0: 0}),
        ([[0.0, 0.0], [0.0, X]], False, {0: 1, 1: 0}),
        ([[0.0, 0.0, 0.0], [X, 0.0, 0.0]], True, {0: 0, 1: 1}),
        ([[X, 0.0], [0.0, X]], True, {0: 1}),
        ([[1.0, 0.0]], True, {0: 1}),
    ],
)
def test_match_calls_prefers_earlier_calls_of_equal_cost(
    costs: list[list[float]], ordered: bool, matches: dict[int, int]
) -> None:
    assert match_calls(costs, ordered=ordered) == matches
