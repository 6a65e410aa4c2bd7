"""Comparison of several sides with a baseline. The intervals are simultaneous over all sides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Generic, Protocol, TypeVar

from django.db.models import F

from toolbench.evals.decisions.assessments import IntervalEstimate
from toolbench.evals.statistics.quantiles import Quantile, compute_quantile
from toolbench.lab.metrics.cost import CostSums, add_costs, estimate_cost_per_success
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.models import Cell
from toolbench.lab.results.compare.comparison import (
    RequiredTrials,
    build_side_names,
    compute_required_trials,
    count_shared_trials,
)
from toolbench.lab.results.compare.matching import PoolChoice, choose_pool, match_sides
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.results.compare.sides import filter_side_trials
from toolbench.lab.results.compare.statistics import RateComparison, build_side_rate, choose_and_compare
from toolbench.lab.results.compare.strata import StratumCounts, collect_cell_ids, read_strata
from toolbench.lab.results.compare.warnings import FAR_APART, OVERLOADED, SIMULATED, is_far_apart
from toolbench.lab.results.run_choices import ADDED_MANUALLY
from toolbench.lab.results.run_differences import describe_run_differences, find_run_differences

RESULT_MARKS = {"better": "pass", "worse": "fail"}  # outcome whose mark a page shows, by result


class ComparedSide(Protocol):
    """A side with its rate and its difference from the baseline."""

    @property
    def number(self) -> int:
        """Return the position of the side in the query; 0 is the baseline."""

    @property
    def name(self) -> str:
        """Return the name of the side."""

    @property
    def rate(self) -> Rate:
        """Return the success of the side."""

    @property
    def compared(self) -> RateComparison | None:
        """Return the comparison of the baseline with this side; None without one."""

    @property
    def is_baseline(self) -> bool:
        """Return whether this is the baseline."""

    @property
    def result(self) -> str:
        """Return the result in words."""


Side = TypeVar("Side", bound=ComparedSide)


@dataclass(frozen=True, slots=True)
class SideFigures:
    """Times, tokens and cost of the trials that a row counts.

    Attributes:
        trials: number of trials that passed, failed or had an infrastructure error.
        p50: median duration of answered trials in milliseconds; None without such trials.
        p95: 95th percentile of these durations; None without such trials.
        tokens_out: output tokens per trial, rounded; 0 without trials.
        end_to_end_successes: number of trials that passed and that no user had retried after an error.
        cost: dollars per end-to-end success; None if the cost is unknown or there is no such success.
        first_start: start of the first trial; None if no start is known, as in some imported runs.
        last_start: start of the last trial; None if no start is known.
        overloaded_trials: number of trials measured while this machine was overloaded.
        manual_trials: number of trials that were added manually after results were seen.
    """

    trials: int
    p50: Quantile | None
    p95: Quantile | None
    tokens_out: int
    end_to_end_successes: int
    cost: IntervalEstimate | None
    first_start: datetime | None
    last_start: datetime | None
    simulated: bool
    overloaded_trials: int
    manual_trials: int


@dataclass(frozen=True, slots=True)
class SideRow:
    """One side and its difference from the baseline.

    Attributes:
        number: position of the side in the query; 0 is the baseline.
        name: name of the side.
        rate: success in the compared strata; in a paired comparison, only the shared instances count. For the baseline,
            and if there is no comparison, success in all strata of the side.
        compared: comparison of the baseline with this side; None for the baseline itself, and if no comparison is
            possible.
        how: "paired" or "stratified"; "" without a comparison.
        figures: figures of all trials in the strata of `rate`, also of instances that are not shared.
        left_out: number of strata that only this side or only the baseline has, as in ComparisonCounts.
        shared_trials: number of trials that the baseline has too. If it is not 0, nothing is compared.
    """

    number: int
    name: str
    rate: Rate
    compared: RateComparison | None
    how: str
    figures: SideFigures
    left_out: int = 0
    shared_trials: int = 0

    @property
    def is_baseline(self) -> bool:
        """Return whether this is the baseline."""
        return self.number == 0

    @property
    def result(self) -> str:
        """Return the result in words.

        It is "better" or "worse" for a significant difference, else "baseline", "shares trials", "nothing shared",
        "withheld" or "cannot tell".
        """
        if self.is_baseline:
            return "baseline"
        if self.compared is None:
            return "shares trials" if self.shared_trials else "nothing shared"
        if self.compared.withheld:
            return "withheld"
        return self.compared.result_text if self.compared.differs else "cannot tell"

    @property
    def mark(self) -> str:
        """Return the outcome whose mark stands for the result."""
        return RESULT_MARKS.get(self.result, "na")


@dataclass(frozen=True, slots=True)
class ComparedRows(Generic[Side]):
    """Sides of a comparison.

    Attributes:
        rows: the sides, the baseline first.
    """

    rows: tuple[Side, ...]

    @property
    def baseline(self) -> Side:
        """Return the baseline."""
        return self.rows[0]

    @property
    def others(self) -> tuple[Side, ...]:
        """Return all sides but the baseline."""
        return self.rows[1:]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the sides, the baseline first."""
        return tuple(side.name for side in self.rows)

    @property
    def result_counts(self) -> Mapping[str, int]:
        """Return the numbers of sides that are worse, better, and neither ("cannot tell")."""
        results = [side.result for side in self.others]
        worse, better = results.count("worse"), results.count("better")
        return {"worse": worse, "better": better, "cannot tell": len(results) - worse - better}


@dataclass(frozen=True, slots=True)
class BaselineComparison(ComparedRows[SideRow]):
    """Comparison of the sides of a query with its first one.

    Attributes:
        pool: the scenario group and the instance kind that are counted.
        comparisons: number of differences that are shown together; intervals are corrected for it.
        scenarios: number of scenarios of the baseline.
        required_trials: trials that a side needs to detect a difference of `query.points`.
        strata: the counts of each side, the baseline first, of all scenario groups and instance kinds.
        run_differences: sentences about runs of a side that differ by more than chance; () for two sides, since
            `Comparison.warnings` has these sentences.
    """

    query: CompareQuery
    pool: PoolChoice
    comparisons: int
    scenarios: int
    required_trials: RequiredTrials
    strata: tuple[tuple[StratumCounts, ...], ...]
    run_differences: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings about all sides.

        The page of two sides shows `Comparison.warnings` instead.
        """
        baseline, *others = (row.figures for row in self.rows)
        sides = (baseline, *others)
        applies_by_warning = {
            SIMULATED: any(side.simulated for side in sides),
            FAR_APART: any(is_far_apart(baseline, side) for side in others),
            OVERLOADED: any(side.overloaded_trials for side in sides),
            ADDED_MANUALLY: any(side.manual_trials for side in sides),
        }
        sentences = (sentence for sentence, applies in applies_by_warning.items() if applies)
        return (*self.run_differences, *sentences)


def compare_with_baseline(query: CompareQuery) -> BaselineComparison:
    """Return the comparison of all sides.

    The function sends at most three SQL queries, and one more for each side that has cells in common with the baseline.
    """
    side_trials = [filter_side_trials(side, demo=query.demo, chosen=query.chosen) for side in query.sides]
    strata = read_strata(side_trials)
    pool = choose_pool(strata[0], [stratum for side in strata[1:] for stratum in side], query.group, query.kind)
    counted = tuple(tuple(pool.select(side)) for side in strata)
    shared = [
        count_shared_trials((side_trials[0], trials), (strata[0], side_strata))
        for trials, side_strata in zip(side_trials[1:], strata[1:], strict=True)
    ]
    costs, names = _read_cell_costs(counted), build_side_names(query)
    baseline = SideRow(
        0, names[0], build_side_rate(counted[0], query.metric), None, "", _build_figures(counted[0], costs)
    )
    others = [
        _build_row((number, name), (counted[0], side_strata), query, costs, shared_trials)
        for number, (name, side_strata, shared_trials) in enumerate(zip(names[1:], counted[1:], shared, strict=True), 1)
    ]
    rows = (baseline, *_make_simultaneous(others))
    return BaselineComparison(
        query=query,
        rows=rows,
        pool=pool,
        comparisons=_count_differences(rows),
        scenarios=len({stratum.scenario for stratum in counted[0]}),
        required_trials=compute_baseline_required_trials(rows, query.points),
        strata=strata,
        run_differences=_describe_run_differences(counted, query) if query.has_more_than_two else (),
    )


def _describe_run_differences(counted: Sequence[Sequence[StratumCounts]], query: CompareQuery) -> tuple[str, ...]:
    return describe_run_differences(find_run_differences([*map(collect_cell_ids, counted)], query.metric))


def _build_row(
    number_and_name: tuple[int, str],
    strata: tuple[Sequence[StratumCounts], Sequence[StratumCounts]],
    query: CompareQuery,
    costs: Mapping[int, CostSums],
    shared_trials: int,
) -> SideRow:
    """Return the row of a side, before its interval is corrected.

    Args:
        number_and_name: position and name of the side.
        strata: counts of the baseline and of the side.
        query: gives the metric and whether a comparison may be paired.
        costs: sums of costs by cell id.
        shared_trials: number of trials that the baseline has too.
    """
    counts = match_sides(*strata, metric=query.metric)
    if shared_trials or not counts.keys:
        rate, figures = build_side_rate(strata[1], query.metric), _build_figures(strata[1], costs)
        return SideRow(*number_and_name, rate, None, "", figures, counts.left_out, shared_trials)
    compared, how, _ = choose_and_compare(counts, how=query.how)
    figures = _build_figures([stratum for key in counts.keys for stratum in counts.second[key]], costs)
    return SideRow(*number_and_name, compared.second, compared, how, figures, counts.left_out)


def _make_simultaneous(rows: Sequence[SideRow]) -> list[SideRow]:
    """Return the rows with differences that are corrected for the number of differences."""
    comparisons = _count_differences(rows)
    return [replace(row, compared=row.compared.with_comparisons(comparisons)) if row.compared else row for row in rows]


def _count_differences(rows: Sequence[SideRow]) -> int:
    return sum(row.compared is not None and row.compared.difference is not None for row in rows)


def compute_baseline_required_trials(rows: Sequence[ComparedSide], points: int) -> RequiredTrials:
    """Return the trials that a side needs, computed from the comparison with the fewest trials.

    If no side is compared, they are computed from the baseline's rate.

    Args:
        rows: the sides, the baseline first.
        points: the difference to detect, in percentage points.
    """
    compared = [row.compared for row in rows if row.compared]
    if not compared:
        return compute_required_trials(RateComparison(rows[0].rate, rows[0].rate, None, False, False), points)
    return compute_required_trials(min(compared, key=lambda pair: min(pair.first.n, pair.second.n)), points)


def _build_figures(strata: Sequence[StratumCounts], costs: Mapping[int, CostSums]) -> SideFigures:
    durations = [duration for stratum in strata for duration in stratum.durations]
    trials = sum(stratum.tried for stratum in strata)
    return SideFigures(
        trials=trials,
        p50=compute_quantile(durations, 0.5) if durations else None,
        p95=compute_quantile(durations, 0.95) if durations else None,
        tokens_out=round(sum(stratum.output_tokens for stratum in strata) / trials) if trials else 0,
        end_to_end_successes=sum(stratum.passed - stratum.retried_passes for stratum in strata),
        cost=_estimate_cost(strata, trials, costs),
        first_start=min((stratum.first_start for stratum in strata if stratum.first_start), default=None),
        last_start=max((stratum.last_start for stratum in strata if stratum.last_start), default=None),
        simulated=any(stratum.simulated for stratum in strata),
        overloaded_trials=sum(stratum.overloaded_trials for stratum in strata),
        manual_trials=sum(stratum.manual_trials for stratum in strata),
    )


def _estimate_cost(
    strata: Sequence[StratumCounts], trials: int, costs: Mapping[int, CostSums]
) -> IntervalEstimate | None:
    """Return the cost per end-to-end success.

    Returns:
        None if the cost is unknown, no trial succeeded, a cell is stale or could not be computed, or a cell has trials
        that the side does not count.
    """
    paid = add_costs(costs[pk] for pk in collect_cell_ids(strata) if pk in costs)
    return estimate_cost_per_success(paid) if paid.tried == trials else None


def _read_cell_costs(sides: Sequence[Sequence[StratumCounts]]) -> Mapping[int, CostSums]:
    """Return the sums of costs by cell id with one SQL query.

    Cells that are stale or could not be computed are left out.
    """
    cell_ids = collect_cell_ids(chain.from_iterable(sides))
    cells = Cell.objects.filter(pk__in=cell_ids, stale=False, compute_error="").order_by()
    tried = F("passed") + F("failed") + F("infra")
    rows = cells.values_list(
        "pk", tried, "costs_reported", "costs_known", "known_dollars", "squared_dollars", "delivered_dollars",
        F("passed") - F("late_passes"), "tried_tokens",
    )  # fmt: skip
    return {pk: CostSums(*figures) for pk, *figures in rows}
