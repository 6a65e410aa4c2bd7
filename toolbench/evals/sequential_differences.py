"""Is one side better than the other, where trials went on until something was decided? An interval and a p-value of the
difference that hold at every look.

Every scenario of both sides has its always-valid interval; they hold all at once, each at its part of the error. So
does then their difference, weighed as Mantel and Haenszel do or in any other way. The p-value is the least error at
which that interval leaves out no difference. The price is width: it is not for trials whose number was fixed."""

from collections.abc import Sequence

from toolbench.evals.intervals import Part, interval
from toolbench.evals.statistics.differences import ALPHA, Difference

_LEAST, _MOST = 1e-12, 0.999  # errors between which the p-value is looked for
_HALVINGS = 24


Pair = tuple[Part, Part]


def sequential_difference(pairs: Sequence[Pair]) -> Difference | None:
    """The second side less the first; None where no stratum was tried on both."""
    compared = [pair for pair in pairs if pair[0].n and pair[1].n]
    if not compared:
        return None
    weights = [first.n * second.n / (first.n + second.n) for first, second in compared]
    whole = sum(weights)
    shares = [weight / whole for weight in weights]
    gaps = [second.k / second.n - first.k / first.n for first, second in compared]
    low, high = _ends(compared, shares, ALPHA)
    return Difference(sum(map(float.__mul__, shares, gaps)), low, high, _p(compared, shares))


def _ends(pairs: Sequence[Pair], shares: Sequence[float], error: float) -> tuple[float, float]:
    part = error / (2 * len(pairs))
    low = high = 0.0
    for share, (first, second) in zip(shares, pairs, strict=True):
        below, above = interval(first.k, first.n, first.stopping.within(part))
        under, over = interval(second.k, second.n, second.stopping.within(part))
        low, high = low + share * (under - above), high + share * (over - below)
    return low, high


def _p(pairs: Sequence[Pair], shares: Sequence[float]) -> float:
    """By halving, since a larger error only narrows the interval."""

    def leaves_out(error: float) -> bool:
        low, high = _ends(pairs, shares, error)
        return low > 0 or high < 0

    if not leaves_out(_MOST):
        return 1.0
    low, high = _LEAST, _MOST
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if leaves_out(middle) else (middle, high)
    return high
