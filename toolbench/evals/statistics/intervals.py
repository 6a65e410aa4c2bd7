"""Which interval a count gets. This is the one place that decides: whoever shows a rate says how its trials ended."""

from collections.abc import Iterable
from dataclasses import dataclass

from toolbench.evals.statistics.sequential import compute_anytime_interval, compute_anytime_mean_interval
from toolbench.evals.statistics.shares import compute_wilson_interval


@dataclass(frozen=True, slots=True)
class StoppingDesign:
    """How the trials behind a count ended. `error` is the least of the cells that went on until they were decided, None
    where every number was fixed beforehand; `cells` is how many cells the count is of."""

    error: float | None = None
    cells: int = 1

    def with_error(self, error: float) -> "StoppingDesign":
        """As if watched all along, with this error."""
        return StoppingDesign(error, self.cells)


FIXED_STOPPING = StoppingDesign()


@dataclass(frozen=True, slots=True)
class ScenarioSample:
    """`k` of `n` of one scenario, in independent trials. `clustered`: there were more, which hang together."""

    k: float
    n: int
    stopping: StoppingDesign = FIXED_STOPPING
    clustered: bool = False


def combine_stoppings(stoppings: Iterable[StoppingDesign]) -> StoppingDesign:
    """Of counts of different cells, added up."""
    every = tuple(stoppings)
    error = min((one.error for one in every if one.error is not None), default=None)
    return StoppingDesign(error, sum(one.cells for one in every))


def compute_interval(k: int, n: int, stopping: StoppingDesign = FIXED_STOPPING) -> tuple[float, float]:
    """The ends as fractions: Wilson's where every number of trials was fixed; the always-valid one where any cell went
    on until it was decided, of one rate for one cell and of the mean of rates for several."""
    if stopping.error is None:
        return compute_wilson_interval(k, n)
    return (compute_anytime_interval if stopping.cells == 1 else compute_anytime_mean_interval)(k, n, stopping.error)
