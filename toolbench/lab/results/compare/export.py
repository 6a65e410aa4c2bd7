"""Exports: of two sides a row for the whole, per stratum and per metric of calls; of more sides a row per side."""

from collections import Counter
from collections.abc import Sequence

from toolbench.lab.metrics.export_table import ExportTable, Value
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.retries import RetryCounts
from toolbench.lab.metrics.times import list_quantile_columns, list_quantile_values
from toolbench.lab.results.compare.baseline import BaselineComparison, SideRow, compare_with_baseline
from toolbench.lab.results.compare.comparison import Comparison, RequiredTrials, get_comparison
from toolbench.lab.results.compare.query import SUCCESS_METRICS, CompareQuery
from toolbench.lab.results.compare.secondary_metrics import QUANTILES
from toolbench.lab.results.compare.statistics import RateComparison

_RETRY_COLUMNS = ("answers_429", "answers_5xx", "retries", "backoff_ms")
COMPARISON_COLUMNS = (
    "what", "scenario", "stratum", "first_k", "first_n", "first_low", "first_high", "second_k", "second_n",
    "second_low", "second_high", "difference", "low", "high", "p", "p_corrected", "says", "simulated",
    "low_simultaneous", "high_simultaneous", "comparisons", "difference_shown",
    *(f"{side}_{name}" for name in _RETRY_COLUMNS for side in ("first", "second")),
)  # fmt: skip
TIME_COLUMNS = tuple(
    f"{side}_{column}"
    for name, _ in QUANTILES
    for side in ("first", "second")
    for column in list_quantile_columns(name)
)
SIDE_COLUMNS = (
    "side", "is_baseline", "k", "n", "rate_low", "rate_high", "baseline_k", "baseline_n", "difference", "low", "high",
    "p", "result", "how", "left_out", "shared_trials", "simulated", *list_quantile_columns("p50"),
    *list_quantile_columns("p95"), "tokens_out", "cost_per_success", "cost_low", "cost_high",
)  # fmt: skip
_EMPTY_TIMES: tuple[Value, ...] = (None,) * len(TIME_COLUMNS)


def export_sides(query: CompareQuery) -> ExportTable:
    """Return the comparison of all sides as a table, in the form of `export_comparison` for two."""
    return export_baseline(compare_with_baseline(query)) if query.has_several else export_comparison(query)


def export_baseline(found: BaselineComparison) -> ExportTable:
    """Return a row for each side, the baseline first.

    Differences are fractions, the side less the baseline; `low` and `high` are simultaneous over all sides.
    """
    notes = (
        f"{SUCCESS_METRICS[found.query.metric]}; each side less the baseline {found.baseline.name}.",
        f"low, high and p are of {found.comparisons} differences together (Bonferroni): result rests on them.",
        "k and n are of the scenarios and settings that a side shares with the baseline, baseline_k and baseline_n "
        "the baseline's there.",
        *found.warnings,
    )
    title = f"{len(found.others)} sides against {found.baseline.name}"
    return ExportTable(title, notes, SIDE_COLUMNS, tuple(_build_side_row(row) for row in found.rows))


def _build_side_row(row: SideRow) -> tuple[Value, ...]:
    compared, figures = row.compared, row.figures
    difference = compared.difference if compared else None
    bounds = (difference.value, difference.low, difference.high, difference.p) if difference else (None,) * 4
    shared = (compared.first.k, compared.first.n) if compared else (None, None)
    cost = (figures.cost.value, figures.cost.low, figures.cost.high) if figures.cost else (None,) * 3
    times = (*list_quantile_values(figures.p50), *list_quantile_values(figures.p95))
    return (
        *(row.name, row.is_baseline, *_build_rate_values(row.rate), *shared, *bounds, row.result, row.how or None),
        *(row.left_out, row.shared_trials, figures.simulated, *times, figures.tokens_out, *cost),
    )


def export_comparison(query: CompareQuery) -> ExportTable:
    """Return the comparison of two sides as a table.

    Differences are fractions, the second side less the first. None is a value that was not computed. Durations are
    given for the whole only.
    """
    page = get_comparison(query)
    rows: list[tuple[Value, ...]] = []
    simulated = any(side.simulated for side in page.sides)
    if page.comparable:
        counts, strata = {name: sides for name, *sides in page.retries}, Counter(row.scenario for row in page.rows)
        rows += [
            (
                *_build_row(("whole", "", ""), page.whole, simulated),
                *_build_retry_values(counts[""]),
                *_build_time_values(page),
            )
        ]
        for row in page.rows:
            sides = counts.get(row.scenario, counts[""]) if strata[row.scenario] == 1 else None
            named = ("by scenario", row.scenario, row.label)
            rows += [(*_build_row(named, row.compared, simulated), *_build_retry_values(sides), *_EMPTY_TIMES)]
        for call in page.beside.calls:
            rows += [
                (
                    *_build_row((call.metric.label, "", ""), call.compared, simulated),
                    *_build_retry_values(None),
                    *_EMPTY_TIMES,
                )
            ]
    return ExportTable(
        f"{page.names[1]} against {page.names[0]}",
        _build_notes(page),
        (*COMPARISON_COLUMNS, *TIME_COLUMNS),
        tuple(rows),
    )


def _build_retry_values(sides: Sequence[RetryCounts] | None) -> tuple[Value, ...]:
    """Return the retry counts of both sides; None where they are not known or not counted for this row."""
    pair = sides or (None, None)
    return tuple(
        getattr(side, name) if side is not None and side.retries_known else None
        for name in _RETRY_COLUMNS
        for side in pair
    )


def _build_time_values(page: Comparison) -> tuple[Value, ...]:
    """Return value and bounds of both sides for each quantile; None where times are not compared."""
    if not page.beside.times:
        return _EMPTY_TIMES
    shifts = [time_row.shift for time_row in page.beside.times]
    sides = (side for shift in shifts for side in ((shift.first, shift.second) if shift else (None, None)))
    return tuple(value for side in sides for value in list_quantile_values(side))


def _build_row(named: tuple[Value, Value, Value], compared: RateComparison, simulated: bool) -> tuple[Value, ...]:
    """Return the columns up to `difference_shown`: the comparison alone, then as one of those shown together."""
    found = compared.difference
    alone = found.with_comparisons(1) if found else None
    by_itself = (alone.value, alone.low, alone.high, alone.p) if alone else (None, None, None, None)
    together = (found.low, found.high, found.comparisons, found.is_significant) if found else (None, None, None, None)
    rates = (*_build_rate_values(compared.first), *_build_rate_values(compared.second))
    return (*named, *rates, *by_itself, compared.p, compared.result_text, simulated, *together)


def _build_rate_values(rate: Rate) -> tuple[Value, ...]:
    return (rate.k, rate.n, None, None) if rate.withheld else (rate.k, rate.n, rate.low, rate.high)


def _describe_required_trials(needed: RequiredTrials) -> str:
    return f"{needed.more} more trials a side would" if needed.more else "So many trials"


def _build_notes(page: Comparison) -> tuple[str, ...]:
    fates = page.flips
    sentence = (
        f"instances: {fates.regressed} regressed, {fates.fixed} fixed, {fates.still_failing} still failing, "
        f"{fates.still_passing} still passing, {fates.new} new, {fates.removed} removed"
    )
    return (
        f"{page.metric}, {page.how}; the second side less the first.",
        *((sentence,) if page.how == "paired" else ()),
        f"{_describe_required_trials(page.needed)} find {page.needed.points} points in 4 of 5 comparisons.",
        "low, high and p are of a comparison alone. p_corrected, low_simultaneous and high_simultaneous are of all the "
        "comparisons shown together, as many as comparisons says (Bonferroni): says and difference_shown rest on them. "
        "The whole is a family of its own; the scenarios are one, and calls, times and cost are another.",
        *page.warnings,
    )
