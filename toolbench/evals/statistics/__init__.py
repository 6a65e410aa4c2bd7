"""Statistics of trials: shares, quantiles, differences, pairs, clusters, many comparisons at once, power."""

from toolbench.evals.statistics.quantiles import Quantile, answers_until_closed, parity_percentile, quantile
from toolbench.evals.statistics.shares import LEVEL, Z, clopper_pearson, more_trials_to_clear, wilson

__all__ = [
    "LEVEL",
    "Quantile",
    "Z",
    "answers_until_closed",
    "clopper_pearson",
    "more_trials_to_clear",
    "parity_percentile",
    "quantile",
    "wilson",
]
