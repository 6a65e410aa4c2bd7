"""The interval of a count of passes, which depends on how the number of trials was determined."""

from collections.abc import Iterable
from dataclasses import dataclass

from toolbench.evals.statistics.sequential import compute_anytime_interval, compute_anytime_mean_interval
from toolbench.evals.statistics.shares import compute_wilson_interval


@dataclass(frozen=True, slots=True)
class StoppingDesign:
    """The way in which the number of trials behind a count was determined.

    Attributes:
        error: The smallest error of the cells with sequential stopping, as a probability; None if the number of trials
            of every cell was fixed before the first trial.
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
    """The passes and trials of one scenario.

    Attributes:
        k: The number of passes, possibly an effective one.
        n: The number of independent trials, possibly an effective sample size.
        stopping: The way in which the number of trials was determined.
        clustered: Whether `k` and `n` are effective counts of correlated trials.
    """

    k: float
    n: int
    stopping: StoppingDesign = FIXED_STOPPING
    clustered: bool = False


def combine_stoppings(stoppings: Iterable[StoppingDesign]) -> StoppingDesign:
    """Return the design of a count that is the sum of the counts with these designs."""
    designs = tuple(stoppings)
    error = min((design.error for design in designs if design.error is not None), default=None)
    return StoppingDesign(error, sum(design.cells for design in designs))


def compute_interval(k: int, n: int, stopping: StoppingDesign = FIXED_STOPPING) -> tuple[float, float]:
    """Return the ends of the interval of k passes in n trials, as fractions.

    It is the 95 % Wilson interval if the numbers of trials were fixed. With sequential stopping it is the anytime-valid
    interval at the design's error: of one rate for one cell, of the mean rate for any other number of cells. Without
    trials it is (0, 1).

    Raises:
        ValueError: The counts do not satisfy 0 <= k <= n, or the design's error is not between 0 and 1.
    """
    if stopping.error is None:
        return compute_wilson_interval(k, n)
    return (compute_anytime_interval if stopping.cells == 1 else compute_anytime_mean_interval)(k, n, stopping.error)
