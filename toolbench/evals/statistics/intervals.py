"""The choice of the interval for a count: the only place that decides it, from how the trials ended."""

from collections.abc import Iterable
from dataclasses import dataclass

from toolbench.evals.statistics.sequential import compute_anytime_interval, compute_anytime_mean_interval
from toolbench.evals.statistics.shares import compute_wilson_interval


@dataclass(frozen=True, slots=True)
class StoppingDesign:
    """How the trials behind a count ended.

    Attributes:
        error: The smallest error of the cells with sequential stopping; None if every number of trials was fixed
            beforehand.
        cells: The number of cells that the count covers.
    """

    error: float | None = None
    cells: int = 1

    def with_error(self, error: float) -> "StoppingDesign":
        """Return the same design with sequential stopping at this error."""
        return StoppingDesign(error, self.cells)


FIXED_STOPPING = StoppingDesign()


@dataclass(frozen=True, slots=True)
class ScenarioSample:
    """Passes `k` of `n` independent trials of one scenario.

    Attributes:
        clustered: Whether `k` and `n` are effective counts of more trials that are correlated.
    """

    k: float
    n: int
    stopping: StoppingDesign = FIXED_STOPPING
    clustered: bool = False


def combine_stoppings(stoppings: Iterable[StoppingDesign]) -> StoppingDesign:
    """Return the design of the added counts of different cells."""
    stoppings_seen = tuple(stoppings)
    error = min((stopping.error for stopping in stoppings_seen if stopping.error is not None), default=None)
    return StoppingDesign(error, sum(stopping.cells for stopping in stoppings_seen))


def compute_interval(k: int, n: int, stopping: StoppingDesign = FIXED_STOPPING) -> tuple[float, float]:
    """Return the ends of the interval of k of n, as fractions.

    It is Wilson's interval if every number of trials was fixed. With sequential stopping it is the anytime-valid
    interval: of one rate for one cell, of the mean of rates for several cells.
    """
    if stopping.error is None:
        return compute_wilson_interval(k, n)
    return (compute_anytime_interval if stopping.cells == 1 else compute_anytime_mean_interval)(k, n, stopping.error)
