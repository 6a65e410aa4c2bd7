"""Statistical power of a plan: the detectable difference, and the trials that a difference needs."""

import math
from collections import Counter
from dataclasses import dataclass

from toolbench.evals.statistics.power import count_trials_to_detect, find_detectable_difference
from toolbench.lab.planning.run_request import Plan

ASSUMED_SUCCESS = 0.9  # success rate of the better configuration
DEFAULT_POINTS = 10  # percentage points


@dataclass(frozen=True, slots=True)
class PowerHint:
    """Detectable difference between two configurations, and the trials that a difference needs.

    Both assume a power of 80 % and a success rate of 90 % of the better configuration.

    Attributes:
        trials: number of trials in applicable tool scenarios. It is that of the configuration with the fewest, apart
            from configurations with none. With sequential stopping, it is the maximum.
        detectable_points: the detectable difference in percentage points; None if no difference is detectable.
        points: the difference to detect, in percentage points.
        needed_trials: number of trials of each configuration in each scenario that detect a difference of `points`.
    """

    trials: int
    detectable_points: int | None
    points: int
    needed_trials: int


def compute_power_hint(plan: Plan, points: int | None) -> PowerHint | None:
    """Return the detectable difference of a plan, and the trials that a difference of `points` needs.

    Args:
        plan: the plan; the numbers are those of its configuration with the fewest applicable tool scenarios.
        points: the difference to detect, in percentage points; None or 0 for DEFAULT_POINTS.

    Returns:
        The hint; None without applicable tool scenarios.
    """
    scenario_counts = Counter(cell.config for cell in plan.cells if cell.applicable and not cell.control)
    if not scenario_counts:
        return None
    fewest, repeats = min(scenario_counts.values()), plan.trials // len(plan.cells)
    difference = find_detectable_difference(fewest * repeats, share=ASSUMED_SUCCESS)
    chosen_points = points or DEFAULT_POINTS
    return PowerHint(
        trials=fewest * repeats,
        detectable_points=None if difference is None else round(100 * difference),
        points=chosen_points,
        needed_trials=math.ceil(count_trials_to_detect(chosen_points / 100, share=ASSUMED_SUCCESS) / fewest),
    )
