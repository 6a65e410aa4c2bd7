"""Which interval a count gets. This is the one place that decides: whoever shows a rate says how its trials ended."""

from collections.abc import Iterable
from dataclasses import dataclass

from toolbench.evals.statistics.sequential import always_valid, always_valid_mean
from toolbench.evals.statistics.shares import wilson


@dataclass(frozen=True, slots=True)
class Stopping:
    """How the trials behind a count ended. `error` is the least of the cells that went on until they were decided, None
    where every number was fixed beforehand; `cells` is how many cells the count is of."""

    error: float | None = None
    cells: int = 1

    def within(self, error: float) -> "Stopping":
        """As if watched all along, with this error."""
        return Stopping(error, self.cells)


FIXED = Stopping()


@dataclass(frozen=True, slots=True)
class Part:
    """`k` of `n` of one scenario, in independent trials. `clustered`: there were more, which hang together."""

    k: float
    n: int
    stopping: Stopping = FIXED
    clustered: bool = False


def together(stoppings: Iterable[Stopping]) -> Stopping:
    """Of counts of different cells, added up."""
    every = tuple(stoppings)
    error = min((one.error for one in every if one.error is not None), default=None)
    return Stopping(error, sum(one.cells for one in every))


def interval(k: int, n: int, stopping: Stopping = FIXED) -> tuple[float, float]:
    """The ends as fractions: Wilson's where every number of trials was fixed; the always-valid one where any cell went
    on until it was decided, of one rate for one cell and of the mean of rates for several."""
    if stopping.error is None:
        return wilson(k, n)
    return (always_valid if stopping.cells == 1 else always_valid_mean)(k, n, stopping.error)
