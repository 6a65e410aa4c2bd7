"""Statistics of trials: rates, quantiles, comparisons, clusters, stopping, drift and power."""

from toolbench.evals.statistics.quantiles import (
    Quantile,
    compute_nearest_rank_percentile,
    compute_quantile,
    count_more_answers_for_bounds,
)
from toolbench.evals.statistics.shares import (
    CONFIDENCE_LEVEL,
    Z,
    compute_exact_interval,
    compute_wilson_interval,
    count_more_trials_to_reach_target,
)

__all__ = [
    "CONFIDENCE_LEVEL",
    "Quantile",
    "Z",
    "compute_exact_interval",
    "compute_nearest_rank_percentile",
    "compute_quantile",
    "compute_wilson_interval",
    "count_more_answers_for_bounds",
    "count_more_trials_to_reach_target",
]
