"""A comparison to take away: one row for the whole, one for every scenario, one for every way of calling."""

from toolbench.lab.comparisons.compare import Comparison, Needed, get_comparison
from toolbench.lab.comparisons.compare_counts import Compared
from toolbench.lab.comparisons.compare_query import CompareQuery
from toolbench.lab.counts.export_table import ExportTable, Value
from toolbench.lab.counts.rates import Rate

COLUMNS = (
    "what", "scenario", "stratum", "first_k", "first_n", "first_low", "first_high", "second_k", "second_n",
    "second_low", "second_high", "difference", "low", "high", "p", "p_corrected", "says", "simulated",
)  # fmt: skip


def export_comparison(query: CompareQuery) -> ExportTable:
    """What the page shows. Differences are fractions, second side less first; None is what was not computed."""
    page = get_comparison(query)
    simulated = any(side.simulated for side in page.sides)
    rows = [("whole", "", "", *_values(page.whole))] if page.comparable else []
    if page.comparable:
        rows += [("by scenario", row.scenario, row.label, *_values(row.compared)) for row in page.rows]
        rows += [(one.metric.label, "", "", *_values(one.compared)) for one in page.calls]
    return ExportTable(
        f"{page.names[1]} against {page.names[0]}", _notes(page), COLUMNS, tuple((*row, simulated) for row in rows)
    )


def _values(compared: Compared) -> tuple[Value, ...]:
    found = compared.difference
    told = (found.value, found.low, found.high, found.p) if found else (None, None, None, None)
    return (*_rate(compared.first), *_rate(compared.second), *told, compared.p, compared.says)


def _rate(rate: Rate) -> tuple[Value, ...]:
    return (rate.k, rate.n, None, None) if rate.withheld else (rate.k, rate.n, rate.low, rate.high)


def _trials(needed: Needed) -> str:
    return f"{needed.more} more trials a side would" if needed.more else "So many trials"


def _notes(page: Comparison) -> tuple[str, ...]:
    fates = page.flips
    told = (
        f"instances: {fates.regressed} regressed, {fates.fixed} fixed, {fates.still_failing} still failing, "
        f"{fates.still_passing} still passing, {fates.new} new, {fates.removed} removed"
    )
    return (
        f"{page.metric}, {page.how}; the second side less the first.",
        *((told,) if page.how == "paired" else ()),
        f"{_trials(page.needed)} find {page.needed.points} points in 4 of 5 comparisons.",
        *page.warnings,
    )
