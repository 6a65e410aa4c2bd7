"""Two sides that met the same instances: each is a pair, and only pairs that differ say which side is better."""

from collections.abc import Sequence
from math import sqrt

from scipy.special import bdtr

from toolbench.evals.statistics.differences import Difference
from toolbench.evals.statistics.shares import Z


def paired_difference(differences: Sequence[float]) -> Difference | None:
    """From the second side's share less the first's on every shared instance, one trial or several a side; None without
    any.

    The test is the exact sign test, which is McNemar's where each side has one trial of an instance. The interval is
    Bonett and Price's adjusted one of 2012."""
    if not differences:
        return None
    n, total = len(differences), sum(differences)
    shrunk = total / (n + 2)
    spread = (sum(one**2 for one in differences) + 2) / (n + 2) - shrunk**2
    half = Z * sqrt(spread / (n + 2))
    p = sign_p(sum(one > 0 for one in differences), sum(one < 0 for one in differences))
    return Difference(total / n, max(-1.0, shrunk - half), min(1.0, shrunk + half), p)


def sign_p(better: int, worse: int) -> float:
    """The chance, were both directions equally likely, of so lopsided a count; 1 where there is none."""
    return min(1.0, 2 * float(bdtr(min(better, worse), better + worse, 0.5)))
