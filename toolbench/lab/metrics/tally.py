"""Sums of the counters of several cells, and the rates of these sums."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Aggregate, Count, FloatField, Min, PositiveIntegerField, Q, Sum

from toolbench.evals.statistics.intervals import StoppingDesign
from toolbench.lab.metrics.rate import Rate, build_rate
from toolbench.lab.models import Cell
from toolbench.lab.models.counters import COUNTERS, CellCounts


@dataclass(frozen=True, slots=True)
class Tally(CellCounts):
    """Sums over cells.

    Attributes:
        cells: number of cells.
        repeating_cells: number of cells at temperature 0 in which the endpoint repeated an answer to an instance. Rates
            that include such a cell have no interval.
        unpriced_cells: number of cells with tried trials and an unknown cost.
        uncomputed_cells: number of cells whose sums could not be computed; only their numbers of trials are included.
        cost: dollars of the trials in all states; None if there is an unpriced cell or no cell has a cost.
        min_error_probability: the smallest error probability of cells with sequential stopping; None without such a
            cell.
    """

    cells: int = 0
    repeating_cells: int = 0
    unpriced_cells: int = 0
    uncomputed_cells: int = 0
    cost: float | None = None
    min_error_probability: float | None = None

    @property
    def trial_count(self) -> int:
        """Number of trials in any state."""
        return self.ended + self.queued + self.running

    @property
    def ended(self) -> int:
        """Number of trials that have ended, cancelled ones included."""
        return self.passed + self.failed + self.infra + self.not_applicable + self.cancelled

    @property
    def ended_uncancelled(self) -> int:
        """Number of trials that have ended and were not cancelled."""
        return self.ended - self.cancelled

    @property
    def counts_by_outcome(self) -> Mapping[str, int]:
        """Number of trials by outcome; those that have not ended, by state."""
        return {
            "pass": self.passed,
            "fail": self.failed,
            "infra": self.infra,
            "na": self.not_applicable,
            "cancelled": self.cancelled,
            "running": self.running,
            "queued": self.queued,
        }

    @property
    def answered(self) -> int:
        """Number of trials that passed, or failed other than by the trial deadline."""
        return self.passed + self.failed - self.deadline_failed

    @property
    def tried(self) -> int:
        """Number of trials that passed, failed or had an infrastructure error."""
        return self.passed + self.failed + self.infra

    @property
    def is_cost_known(self) -> bool:
        """Whether the cost of each tried trial is known; False without tried trials."""
        return 0 < self.tried == self.costs_known

    @property
    def retries_known(self) -> bool:
        """Whether the counts of answers with status 429 and 5xx, retries and back-off are complete."""
        # Answers without a counted request show that the requests were not recorded.
        return not self.uncomputed_cells and not self.trials_without_status and bool(self.requests or not self.answered)

    @property
    def retries_json(self) -> dict[str, int | float] | None:
        """Counts of answers with status 429 and 5xx, retries and back-off, for exports; None if they are incomplete."""
        names = ("answers_429", "answers_5xx", "retries", "trials_429", "trials_5xx", "trials_retried", "backoff_ms")
        return {name: getattr(self, name) for name in names} if self.retries_known else None

    @property
    def shows_retries(self) -> bool:
        """Whether retry counts are shown: if they are incomplete or one of them is above 0."""
        return not self.retries_known or bool(self.answers_429 or self.answers_5xx or self.retries)

    @property
    def stopping(self) -> StoppingDesign:
        """The way in which the number of trials in these cells was determined."""
        return StoppingDesign(self.min_error_probability, self.cells)

    def build_rate(self, k: int, n: int, target: float | None = None) -> Rate:
        """Build the rate of `k` in `n`, both counted over these cells; `target` is in percent.

        The interval is withheld if there is a repeating cell. Otherwise it is anytime-valid if a cell used sequential
        stopping.
        """
        distinct, withheld = self.distinct or None, bool(self.repeating_cells)
        return build_rate(k, n, target=target, distinct=distinct, withheld=withheld, stopping=self.stopping)

    def compute_answered_success(self, target: float | None = None) -> Rate:
        """Return answered success: the share of passed trials in those with an answer; `target` is in percent."""
        return self.build_rate(self.passed, self.answered, target)

    def compute_end_to_end_success(self, target: float | None = None) -> Rate:
        """Return end-to-end success; `target` is in percent.

        Infrastructure errors and trials over the deadline count as failures. So do trials that a user retried after an
        error, whatever their later outcome.
        """
        return self.build_rate(self.passed - self.late_passes, self.tried, target)


# Columns with numbers of cells, in rows of `build_aggregates` and of CellPool, by attribute of Tally.
_CELL_COUNT_COLUMNS = {
    "cells": "sum_cells",
    "repeating_cells": "sum_repeating",
    "unpriced_cells": "sum_unpriced",
    "uncomputed_cells": "sum_set_aside",
}
_ADDED_FIELDS = (*_CELL_COUNT_COLUMNS, *COUNTERS)
# Condition on repeating cells; `_has_repeats` is the same for a cell in memory.
REPEATING = Q(deterministic=True, repeated_answers__gt=0)
_SUM_NAMES = tuple(f"sum_{name}" for name in COUNTERS)
_read_counters = attrgetter(*COUNTERS)
_read_counts = attrgetter(*_ADDED_FIELDS)
_read_sum_columns = itemgetter(*_CELL_COUNT_COLUMNS.values(), *_SUM_NAMES)  # in the order of _ADDED_FIELDS


def tally_cells(cells: Iterable[Cell]) -> Tally:
    """Add up the counters of cells."""
    cells = tuple(cells)
    counts = _add_counts(map(_read_counters, cells), tuple(COUNTERS))
    counts |= {"repeating_cells": sum(map(_has_repeats, cells)), "unpriced_cells": sum(map(_is_unpriced, cells))}
    counts["uncomputed_cells"] = sum(bool(cell.compute_error) for cell in cells)
    cost = _sum_costs((cell.cost for cell in cells), counts["unpriced_cells"])
    error = _find_min_error(cell.error for cell in cells)
    return Tally(cells=len(cells), cost=cost, min_error_probability=error, **counts)


def _add_counts(rows: Iterable[Sequence[int]], names: Sequence[str]) -> dict[str, int]:
    """Return the sum of each column over the rows, by name; without rows, each sum is 0.

    A page adds up thousands of rows, so the rows are not visited in a Python loop.

    Args:
        rows: for each row, one count for each name, in the same order.
        names: names of the columns.
    """
    totals = map(sum, zip(*rows, strict=True))  # empty without rows
    return dict(zip(names, totals, strict=False)) or dict.fromkeys(names, 0)


def _find_min_error(errors: Iterable[float | None]) -> float | None:
    """Return the smallest error probability that is not None; None if there is none."""
    return min((error for error in errors if error is not None), default=None)


def _sum_costs(costs: Iterable[float | None], unpriced_cells: int) -> float | None:
    known_costs = [cost for cost in costs if cost is not None]
    return sum(known_costs) if known_costs and not unpriced_cells else None


def _is_unpriced(cell: Cell) -> bool:
    return cell.cost is None and bool(cell.passed + cell.failed + cell.infra)


def _has_repeats(cell: Cell) -> bool:
    return cell.deterministic and cell.repeated_answers > 0


class _UnconvertedSum(Sum):
    """Sum that the database driver returns as int or float. Django would call a function for each value to make it so.

    A page reads tens of thousands of sums. Sums of 64-bit integers need the conversion, as they arrive as Decimal.
    """

    def get_db_converters(self, connection: BaseDatabaseWrapper) -> list[Any]:
        return []


_SUM_CLASSES = {PositiveIntegerField: _UnconvertedSum, FloatField: _UnconvertedSum}  # by class of the column


def build_aggregates() -> dict[str, Aggregate]:
    """Return the annotations that `build_tally` needs in the rows of a grouped query over cells."""
    tried = Q(passed__gt=0) | Q(failed__gt=0) | Q(infra__gt=0)
    aggregates: dict[str, Aggregate] = {
        "sum_cells": Count("pk"),
        "sum_repeating": Count("pk", filter=REPEATING),
        "sum_unpriced": Count("pk", filter=Q(cost=None) & tried),
        "sum_set_aside": Count("pk", filter=~Q(compute_error="")),
        "sum_error": Min("error"),
    }
    sums = {f"sum_{name}": _SUM_CLASSES.get(spec.column, Sum)(name) for name, spec in COUNTERS.items()}
    return aggregates | sums | {"sum_cost": _UnconvertedSum("cost")}


def read_sums(cell: Cell) -> dict[str, int | float | None]:
    """Return the values that the annotations of `build_aggregates` have for a single cell."""
    counts: dict[str, int | float | None] = dict(zip(_SUM_NAMES, _read_counters(cell), strict=True))
    return counts | {
        "sum_cells": 1,
        "sum_repeating": int(_has_repeats(cell)),
        "sum_unpriced": int(_is_unpriced(cell)),
        "sum_set_aside": int(bool(cell.compute_error)),
        "sum_error": cell.error,
        "sum_cost": cell.cost,
    }


def build_tally(row: Mapping[str, Any]) -> Tally:
    """Build a tally from a row of a query with the annotations of `build_aggregates`."""
    counts = dict(zip(_ADDED_FIELDS, _read_sum_columns(row), strict=True))
    cost = _sum_costs([row["sum_cost"]], counts["unpriced_cells"])
    return Tally(cost=cost, min_error_probability=row["sum_error"], **counts)


def add_tallies(tallies: Iterable[Tally]) -> Tally:
    """Add up tallies; no cell may be in more than one of them."""
    tallies = tuple(tallies)
    counts = _add_counts(map(_read_counts, tallies), _ADDED_FIELDS)
    cost = _sum_costs((tally.cost for tally in tallies), counts["unpriced_cells"])
    error = _find_min_error(tally.min_error_probability for tally in tallies)
    return Tally(cost=cost, min_error_probability=error, **counts)
