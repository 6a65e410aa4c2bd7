"""Statistics of trials: shares, quantiles, differences, pairs, clusters, sequential stopping, drift and power."""

from toolbench.evals.statistics.quantiles import (
    Quantile,
    compute_nearest_rank_percentile,
    compute_quantile,
    count_answers_until_closed,
)
from toolbench.evals.statistics.shares import (
    CONFIDENCE_LEVEL,
    Z,
    compute_exact_interval,
    compute_wilson_interval,
    count_more_trials_to_clear,
)

__all__ = [
    "CONFIDENCE_LEVEL",
    "Quantile",
    "Z",
    "compute_exact_interval",
    "compute_nearest_rank_percentile",
    "compute_quantile",
    "compute_wilson_interval",
    "count_answers_until_closed",
    "count_more_trials_to_clear",
]
