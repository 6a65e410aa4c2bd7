"""Before a run: what its trials will be able to tell apart, and how many it would take."""

from collections import Counter
from dataclasses import dataclass

from toolbench.evals.statistics.power import count_trials_to_detect, find_detectable_difference
from toolbench.lab.planning.run_request import Plan

ASSUMED_SUCCESS = 0.9  # of the better side
DEFAULT_POINTS = 10


@dataclass(frozen=True, slots=True)
class PowerHint:
    """Of two configurations of a plan, the better one passing nine times in ten, in 4 of 5 comparisons. `least` is in
    percentage points, None where no difference would be found; `needed` trials a scenario would find `points`."""

    trials: int  # of each configuration, controls left out
    least: int | None
    points: int
    needed: int


def get_power_hint(plan: Plan, points: int | None) -> PowerHint | None:
    """None for a plan without tool scenarios. Configurations with fewer scenarios decide."""
    scenarios = Counter(cell.config for cell in plan.cells if cell.applicable and not cell.control)
    if not scenarios:
        return None
    fewest, repeats = min(scenarios.values()), plan.trials // len(plan.cells)
    found = find_detectable_difference(fewest * repeats, share=ASSUMED_SUCCESS)
    wanted = points or DEFAULT_POINTS
    return PowerHint(
        trials=fewest * repeats,
        least=None if found is None else round(100 * found),
        points=wanted,
        needed=-(-count_trials_to_detect(wanted / 100, share=ASSUMED_SUCCESS) // fewest),
    )
