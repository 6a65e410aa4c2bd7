"""Export of a comparison: a row for the whole, one per stratum and one per metric of calls."""

from collections import Counter
from collections.abc import Sequence

from toolbench.lab.metrics.export_table import ExportTable, Value
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.retries import RetryCounts
from toolbench.lab.metrics.times import list_quantile_columns, list_quantile_values
from toolbench.lab.results.compare.comparison import Comparison, RequiredTrials, get_comparison
from toolbench.lab.results.compare.query import CompareQuery
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
_EMPTY_TIMES: tuple[Value, ...] = (None,) * len(TIME_COLUMNS)


def export_comparison(query: CompareQuery) -> ExportTable:
    """Return the comparison that the page shows as a table.

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
