"""Statistical power of a planned run, and the trials that a difference needs."""

from collections import Counter
from dataclasses import dataclass

from toolbench.evals.statistics.power import count_trials_to_detect, find_detectable_difference
from toolbench.lab.planning.run_request import Plan

ASSUMED_SUCCESS = 0.9  # of the better side
DEFAULT_POINTS = 10


@dataclass(frozen=True, slots=True)
class PowerHint:
    """Power of a comparison of two configurations, the better one passing 90 %, at a power of 80 %.

    Attributes:
        least: the detectable difference in percentage points; None if no difference would be found.
        needed: trials per scenario that detect `points`.
    """

    trials: int  # of each configuration, controls left out
    least: int | None
    points: int
    needed: int


def get_power_hint(plan: Plan, points: int | None) -> PowerHint | None:
    """Return the power of a plan, by the configurations with the fewest scenarios; None without tool scenarios."""
    scenarios = Counter(cell.config for cell in plan.cells if cell.applicable and not cell.control)
    if not scenarios:
        return None
    fewest, repeats = min(scenarios.values()), plan.trials // len(plan.cells)
    found = find_detectable_difference(fewest * repeats, share=ASSUMED_SUCCESS)
    chosen_points = points or DEFAULT_POINTS
    return PowerHint(
        trials=fewest * repeats,
        least=None if found is None else round(100 * found),
        points=chosen_points,
        needed=-(-count_trials_to_detect(chosen_points / 100, share=ASSUMED_SUCCESS) // fewest),
    )
