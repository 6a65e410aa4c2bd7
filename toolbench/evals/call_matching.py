"""Matching of the calls that a model made with the expected calls, for verdicts, grades and pages."""

import math
from collections.abc import Sequence
from operator import itemgetter

import numpy as np
from scipy.optimize import linear_sum_assignment

NO_MATCH = math.inf  # cost of an expected and a made call that cannot be matched
_UNMATCHED_COST = 1e6  # cost of an expected call without a match; above the costs of 90 wrong calls


def match_calls(costs: Sequence[Sequence[float]], *, ordered: bool = False) -> dict[int, int]:
    """Return the index of the made call for each matched expected call, by the index of the expected call.

    As many calls as possible are matched, at the lowest total cost. Among matchings of equal cost, earlier made calls
    are preferred, and the earlier of them are matched with the earlier expected calls.

    Args:
        costs: For each expected call, the costs of matching it with each made call: whole numbers or NO_MATCH.
        ordered: Whether the matched calls have to be in the order of the expected ones.
    """
    if not costs or not costs[0]:
        return {}
    return _match_in_order(costs) if ordered else _match_in_any_order(costs)


def _match_in_any_order(costs: Sequence[Sequence[float]]) -> dict[int, int]:
    matrix = np.array(costs)
    row_count, made_count = matrix.shape
    # Below 1 in total, so that it decides only between equal costs; exact, because the divisor is a power of two.
    earlier_first = (
        np.outer(np.arange(row_count, 0, -1), np.arange(made_count)) / 2 ** (row_count**2 * made_count).bit_length()
    )
    rows, columns = linear_sum_assignment(np.where(np.isinf(matrix), _UNMATCHED_COST, matrix + earlier_first))
    return {int(row): int(column) for row, column in zip(rows, columns, strict=True) if matrix[row, column] != NO_MATCH}


def _match_in_order(costs: Sequence[Sequence[float]]) -> dict[int, int]:
    """Match by dynamic programming over the number of expected calls and the number of made calls so far."""
    best: list[tuple[float, tuple[tuple[int, int], ...]]] = [(0.0, ())] * (len(costs[0]) + 1)  # by number of made calls
    for row, row_costs in enumerate(costs):
        unmatched = [(cost + _UNMATCHED_COST, pairs) for cost, pairs in best]
        extended = unmatched[:1]
        for column, pair_cost in enumerate(row_costs):
            cost, pairs = best[column]
            matched = (cost + pair_cost, (*pairs, (row, column)))
            extended.append(min(unmatched[column + 1], extended[-1], matched, key=itemgetter(0)))
        best = extended
    return dict(best[-1][1])
