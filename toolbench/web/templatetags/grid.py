"""Template filters and tags of the grid: texts of its cells and the links that sort it."""

from django import template
from django.utils.safestring import SafeString, mark_safe

from toolbench.evals.statistics.quantile_texts import render_quantile_bounds
from toolbench.lab.metrics.definitions import compute_tokens_per_trial
from toolbench.lab.metrics.values import MetricValue
from toolbench.lab.results.matrix.causes import CauseCounts, find_frequent_cause
from toolbench.lab.results.matrix.grid_types import Grid, GridCell
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.web.templatetags.figures import figure, seconds

register = template.Library()

# Texts for states of `GridCell`; for any other state, the text of the rate is used.
_STATE_TEXTS = {
    "clean": "no failure, too few answers to clear",
    "few": "too few answers",
    "control": "control",
    "plain": "",
}


@register.filter
def cell_text(cell: GridCell) -> str:
    """Return the value of a cell whose metric is not a rate: seconds, tokens, dollars or a share."""
    quantile = cell.value.quantile
    return seconds(quantile.value) if quantile else figure(cell.value.figure)


@register.filter
def cell_title(cell: GridCell) -> str:
    """Return the value of a cell in words.

    The value is a time, a figure, or a rate with its state and the number of infrastructure errors.
    """
    rate, quantile = cell.rate, cell.value.quantile
    if quantile:
        return f"{seconds(quantile.value)} s, n = {quantile.n:,}"
    if rate is None:
        return cell_text(cell)
    infra = f"{cell.tally.infra:,} infrastructure" if cell.tally.infra else ""
    state_text = _STATE_TEXTS.get(cell.state, rate.status_text)
    return " · ".join(part for part in (rate.text, state_text, infra) if part)


@register.filter
def cell_card(cell: GridCell, causes: CauseCounts) -> str:
    """Return the lines that the card of a cell has below the rate.

    The lines are the whole name of the profile, trials by outcome, the most frequent cause, times and tokens, as far as
    they are known. For a cell with a note, they are only the profile and the note.
    """
    profile = f"Profile: {cell.profile}" if cell.profile else ""
    if cell.note:
        return "\n".join(filter(None, (profile, cell.note)))
    tally = cell.tally
    outcomes = {"passed": tally.passed, "failed": tally.failed, "infrastructure": tally.infra}
    cause = find_frequent_cause(causes, cell.config_ids, cell.scenarios) if tally.failed or tally.infra else None
    quantiles = {"p50": cell.times.p50, "p95": cell.times.p95}
    times = " · ".join(f"{name} {seconds(value.value)} s" for name, value in quantiles.items() if value)
    tokens = compute_tokens_per_trial(tally)
    lines = (
        profile,
        " · ".join(f"{count:,} {word}" for word, count in outcomes.items()),
        f"Most often: {cause.sentence} ({cause.count:,})" if cause else "",
        times,
        f"{figure(tokens)} tokens a trial" if tokens else "",
    )
    return "\n".join(line for line in lines if line)


@register.filter
def figure_text(value: MetricValue) -> str:
    """Return the value in one of the columns after the cells; empty if it is unknown."""
    if value.rate:
        return f"{value.rate.percent} %" if value.rate.n else ""
    return seconds(value.quantile.value) if value.quantile else figure(value.figure)


@register.filter
def figure_title(value: MetricValue) -> str:
    """Return the bounds of a quantile, or the counts and the interval of a rate; empty for a figure."""
    if value.quantile:
        return render_quantile_bounds(value.quantile)
    return value.rate.text if value.rate else ""


@register.filter
def cell_style(cell: GridCell) -> SafeString | str:
    """Return the CSS custom properties of a cell; empty for a cell without a rate or an interval.

    The properties are the bounds of the interval, the share, the depth of the tint and, while trials are open, the
    percentage of trials that have ended. All are numbers.
    """
    rate = cell.rate
    if rate is None or not rate.n or rate.withheld:
        return ""
    tally = cell.tally
    ended = f";--ended:{100 * tally.ended // tally.trial_count}" if tally.ended < tally.trial_count else ""
    return mark_safe(f"--lo:{rate.low_axis};--hi:{rate.high_axis};--k:{rate.axis};--d:{cell.tint_percent}{ended}")


@register.filter
def total_text(value: MetricValue | None) -> str:
    """Return the rate of all rows together as a percentage; a dash without a rate or without trials."""
    return f"{value.rate.percent} %" if value and value.rate and value.rate.n else "–"


@register.simple_tag
def sort_query(query: MatrixQuery, grid: Grid, key: str) -> str:
    """Return the query string that sorts by a column, largest first.

    If the grid is already sorted so, the query string sorts it smallest first.
    """
    return f"?{query.query(sort=f'-{key}' if grid.sort == key else key)}"


@register.filter
def sort_direction(grid: Grid, key: str) -> str:
    """Return the value of aria-sort for a column: "none" if the rows are not sorted by it."""
    return {key: "descending", f"-{key}": "ascending"}.get(grid.sort, "none")
