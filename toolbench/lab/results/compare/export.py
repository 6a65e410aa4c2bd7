"""Tables of comparisons for export.

The table of two sides has one row for all trials, one for each stratum and one for each metric of calls. The table of
more sides has one row for each side.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

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
    """Return the table of `export_comparison` for two sides, else that of `export_baseline`."""
    return export_baseline(compare_with_baseline(query)) if query.has_more_than_two else export_comparison(query)


def export_baseline(comparison: BaselineComparison) -> ExportTable:
    """Return a table with one row for each side, the baseline first.

    Differences are fractions, the side less the baseline. `low` and `high` are the ends of their intervals, which are
    simultaneous over all sides. None is a value that is unknown or was not computed.
    """
    notes = (
        f"{SUCCESS_METRICS[comparison.query.metric]}; each side less the baseline {comparison.baseline.name}.",
        f"low, high and p are corrected for {comparison.comparisons} differences (Bonferroni); result uses them.",
        "k and n count trials in the scenarios and settings that a side shares with the baseline; baseline_k and "
        "baseline_n count those of the baseline. In a paired comparison, only shared instances count.",
        *comparison.warnings,
    )
    title = f"{len(comparison.others)} sides against {comparison.baseline.name}"
    return ExportTable(title, notes, SIDE_COLUMNS, tuple(_build_side_row(row) for row in comparison.rows))


def _build_side_row(row: SideRow) -> tuple[Value, ...]:
    compared, figures = row.compared, row.figures
    difference = compared.difference if compared else None
    difference_values = (difference.value, difference.low, difference.high, difference.p) if difference else (None,) * 4
    baseline_counts = (compared.first.k, compared.first.n) if compared else (None, None)
    cost_values = (figures.cost.value, figures.cost.low, figures.cost.high) if figures.cost else (None,) * 3
    time_values = (*list_quantile_values(figures.p50), *list_quantile_values(figures.p95))
    return (
        row.name, row.is_baseline, *_build_rate_values(row.rate), *baseline_counts, *difference_values,
        row.result, row.how or None, row.left_out, row.shared_trials, figures.simulated, *time_values,
        figures.tokens_out, *cost_values,
    )  # fmt: skip


def export_comparison(query: CompareQuery) -> ExportTable:
    """Return the table of `export_pair` for the first two sides of a query."""
    return export_pair(get_comparison(query))


def export_pair(comparison: Comparison) -> ExportTable:
    """Return the comparison of two sides as a table.

    Differences are fractions, the second side less the first. None is a value that is unknown or was not computed.
    Only the row of all trials has durations. The table has no rows if the sides are not comparable.
    """
    return ExportTable(
        f"{comparison.names[1]} against {comparison.names[0]}",
        _build_notes(comparison),
        (*COMPARISON_COLUMNS, *TIME_COLUMNS),
        tuple(_build_rows(comparison)) if comparison.comparable else (),
    )


def _build_rows(comparison: Comparison) -> Iterator[tuple[Value, ...]]:
    simulated = any(side.simulated for side in comparison.sides)
    # Retries are counted by scenario, not by stratum; "" stands for all trials and is the only key for one scenario.
    retries_by_scenario = {scenario: counts for scenario, *counts in comparison.retries}
    strata_per_scenario = Counter(row.scenario for row in comparison.rows)
    yield (
        *_build_row(("whole", "", ""), comparison.whole, simulated),
        *_build_retry_values(retries_by_scenario[""]),
        *_build_time_values(comparison),
    )
    for row in comparison.rows:
        is_whole_scenario = strata_per_scenario[row.scenario] == 1
        retries = retries_by_scenario.get(row.scenario, retries_by_scenario[""]) if is_whole_scenario else None
        labels = ("by scenario", row.scenario, row.label)
        yield (*_build_row(labels, row.compared, simulated), *_build_retry_values(retries), *_EMPTY_TIMES)
    for call in comparison.secondary.calls:
        labels = (call.metric.label, "", "")
        yield (*_build_row(labels, call.compared, simulated), *_build_retry_values(None), *_EMPTY_TIMES)


def _build_retry_values(retries: Sequence[RetryCounts] | None) -> tuple[Value, ...]:
    """Return the values of _RETRY_COLUMNS, each for both sides; unknown values are None.

    Args:
        retries: the counts of both sides; None for a row without counts, whose values are all None.
    """
    return tuple(
        getattr(counts, name) if counts is not None and counts.retries_known else None
        for name in _RETRY_COLUMNS
        for counts in retries or (None, None)
    )


def _build_time_values(comparison: Comparison) -> tuple[Value, ...]:
    """Return the values of TIME_COLUMNS; all are None if times are not compared or a side has no answered trial."""
    if not comparison.secondary.times:
        return _EMPTY_TIMES
    differences = (row.difference for row in comparison.secondary.times)
    quantiles = (
        quantile
        for difference in differences
        for quantile in ((difference.first, difference.second) if difference else (None, None))
    )
    return tuple(value for quantile in quantiles for value in list_quantile_values(quantile))


def _build_row(labels: tuple[Value, Value, Value], compared: RateComparison, simulated: bool) -> tuple[Value, ...]:
    """Return the values of the columns up to `difference_shown`.

    `low`, `high` and `p` are not corrected for other comparisons. `p_corrected`, `says`, `difference_shown` and the
    simultaneous bounds are corrected for the number of comparisons in the family of the row.

    Args:
        labels: values of the columns `what`, `scenario` and `stratum`.
        compared: rates of both sides and their difference.
        simulated: whether any trial of the sides has a simulated model.
    """
    corrected = compared.difference
    single = corrected.with_comparisons(1) if corrected else None
    single_values = (single.value, single.low, single.high, single.p) if single else (None,) * 4
    corrected_values = (
        (corrected.low, corrected.high, corrected.comparisons, corrected.is_significant) if corrected else (None,) * 4
    )
    rates = (*_build_rate_values(compared.first), *_build_rate_values(compared.second))
    return (*labels, *rates, *single_values, compared.p, compared.result_text, simulated, *corrected_values)


def _build_rate_values(rate: Rate) -> tuple[Value, ...]:
    """Return numerator, denominator and both ends of the interval; the ends are None if the interval is withheld."""
    return (rate.k, rate.n, None, None) if rate.withheld else (rate.k, rate.n, rate.low, rate.high)


def _describe_required_trials(required: RequiredTrials) -> str:
    opening = f"{required.more} more trials a side would" if required.more else "The numbers of trials here"
    return f"{opening} find a difference of {required.points} percentage points in 4 of 5 comparisons."


def _build_notes(comparison: Comparison) -> tuple[str, ...]:
    changes = comparison.outcome_changes
    changes_note = (
        f"Instances: {changes.regressed} regressed, {changes.fixed} fixed, {changes.still_failing} still failing, "
        f"{changes.still_passing} still passing, {changes.new} new, {changes.removed} removed."
    )
    return (
        f"{comparison.metric}, {comparison.how}; the second side less the first.",
        *((changes_note,) if comparison.how == "paired" else ()),
        _describe_required_trials(comparison.required_trials),
        "low, high and p belong to one comparison alone. p_corrected, low_simultaneous and high_simultaneous are "
        "corrected for the number of comparisons in the family (Bonferroni); the columns says and difference_shown use "
        "them. There are three families: the row “whole”; the rows “by scenario”; and the rows of calls, together with "
        "times and cost.",
        *comparison.warnings,
    )
