"""Template filters and tags for figures and outcomes, so that all pages show them in the same form."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Protocol

from django import template
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from toolbench.evals.decisions import requirements
from toolbench.evals.statistics.quantile_texts import UNKNOWN_VALUE, render_quantile_bounds, render_quantile_value
from toolbench.evals.statistics.quantiles import Quantile, count_more_answers_for_bounds
from toolbench.evals.statistics.rounding import format_rounded, round_to_int
from toolbench.lab.date_texts import render_day, render_moment
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.retries import RetryCounts
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.metrics.values import Figure
from toolbench.lab.results.decide.records import build_frozen_rate

register = template.Library()

DOTS_PER_LINE = 20
MAX_DOTS = 200
MAX_NARROW_TRIALS = 99  # larger counts have at least three digits, so their rate needs the wide layout
TEXT_NEAR_LIMIT = {"0.0": "<0.1", "100.0": ">99.9"}  # texts of percentages other than 0 and 100 that round to them
OUTCOME_WORDS = {
    "pass": "pass",
    "fail": "fail",
    "infra": "infrastructure",
    "na": "not applicable",
    "cancelled": "cancelled",
    "running": "running",
    "queued": "waiting",
}
# Outcomes whose marks stand for states of a run and likelihoods of a cause.
MARKS = {"finished": "pass", "running": "running", "cancelling": "running", "likely": "fail", "ruled out": "pass"}


@dataclass(frozen=True, slots=True)
class DotGroup:
    """Adjacent dots of one outcome, or the part of a bar for one outcome.

    Attributes:
        count: number of dots, or share of the bar in percent.
    """

    outcome: str
    count: float


@register.filter
def thousands(value: int | None) -> str:
    """Return an integer with thousands separators; empty for None."""
    return "" if value is None else f"{value:,}"


@register.filter
def seconds(milliseconds: float | None) -> str:
    """Return milliseconds as seconds, with three decimals between 0 and 0.1 s, else one; empty for None."""
    if milliseconds is None:
        return ""
    return f"{milliseconds / 1000:.{3 if 0 < milliseconds < 100 else 1}f}"


@register.filter
def money(dollars: float | None) -> str:
    """Return US dollars, with four decimals between 0 and 0.01, else two; "unknown" for None."""
    if dollars is None:
        return "unknown"
    return f"${dollars:.4f}" if 0 < dollars < 0.01 else f"${dollars:,.2f}"


@register.filter
def moment(value: datetime | None, precision: str = "") -> str:
    """Return a date with its time of day (UTC), such as 30 Nov 2026, 09:27; empty for None.

    Args:
        value: the date and time in UTC.
        precision: "seconds" to show the seconds, too.
    """
    return render_moment(value, seconds=precision == "seconds") if value else ""


@register.filter
def day(value: date | str | None) -> str:
    """Return a date, or the date (UTC) of a date and time, such as 30 Nov 2026; empty for None.

    The value may be a text in ISO 8601; any other text is returned unchanged.
    """
    return render_day(value) if value else ""


@register.filter
def span(duration: float | None) -> str:
    """Return seconds as a duration such as 40 s, 3 min or 2 h 5 min; "unknown" for None."""
    if duration is None:
        return "unknown"
    if duration < 90:
        return f"{round_to_int(duration)} s"
    minutes = round_to_int(duration / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


@register.filter
def outcome_word(outcome: str) -> str:
    """Return the word for an outcome on pages; an outcome without a word is returned unchanged."""
    return OUTCOME_WORDS.get(outcome, outcome)


@register.filter
def label_simulated(label: object, simulated: bool) -> str:
    """Return the label of a choice, followed by "(simulated)" if the choice is simulated."""
    return f"{label} (simulated)" if simulated else str(label)


class QueryState(Protocol):
    """State of a page that is in the URL, such as a filter."""

    def query(self, **changes: object) -> str:
        """Return the query string with some fields changed."""
        ...


@register.simple_tag
def address(state: QueryState, **changes: object) -> str:
    """Return the URL of the same page with some of its state changed."""
    return "?" + state.query(**changes)


@register.filter
def values_of(settings: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """Return the non-empty values of the settings with these names, in the order of `settings`."""
    return [value for name, value in settings.items() if name in names and value]


@register.filter
def path_parts(path: str) -> list[str]:
    """Return the parts of a JSON path between which a line may break, such as `$` and `.choices[0]`."""
    return re.split(r"(?=\.)", path)


@register.filter
def word_parts(text: str) -> list[str]:
    """Return the parts of a text between which a line may break: after an underscore, as in an error code."""
    return re.split(r"(?<=_)", text)


@register.filter
def title_of(name: str) -> str:
    """Return the title of a named group, such as `Tool count` for `tool_count`."""
    return name.replace("_", " ").capitalize()


@register.filter
def code_parts(text: str) -> list[str]:
    """Return the parts of a text: alternately plain text and the code that was between backticks."""
    return re.split(r"`([^`]+)`", text)


@register.filter
def value_of(values: Mapping[str, str], name: str) -> str:
    """Return `values[name]`, which a template cannot express if the name is in a variable."""
    return values[name]


@register.filter
def heat(percent: float) -> float:
    """Return the depth of a tint, from 0 to 100, for a percentage.

    The depth is ten times the square root of the percentage, so that 1 % is visible.
    """
    return round(10 * math.sqrt(percent), 1)


@register.filter
def figure(value: Figure | None) -> str:
    """Return a figure, or a range as low–high; empty for None.

    Shares and dollars have their unit; times are seconds without a unit, and other figures whole numbers without one.
    """
    if value is None:
        return ""
    ends = [_format_number(end, value.unit) for end in (value.low, value.high)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]}–{ends[1]}"


def _format_number(number: float, unit: str) -> str:
    if unit == "ms":
        return seconds(number)
    if unit == "share":
        text = format_rounded(100 * number, 1)
        return f"{text if number in (0, 1) else TEXT_NEAR_LIMIT.get(text, text)} %"
    return money(number) if unit == "dollars" else f"{round_to_int(number):,}"


@register.filter
def quantile_value(value: Quantile) -> str:
    """Return a quantile in seconds without its unit."""
    return render_quantile_value(value).removesuffix(" s")


@register.filter
def quantile_bounds(value: Quantile) -> str:
    """Return the bounds of a quantile in seconds, such as 7.6–9.6 or 9.1–open; "open" if both are open."""
    return render_quantile_bounds(value)[1:].partition(", ")[0].replace(" – ", "–")


@register.inclusion_tag("_quantile.html")
def quantile(value: Quantile | None) -> dict[str, object]:
    """Show a quantile of times with its bounds; None is shown as unknown.

    The value is grey if the quantile has an open bound.
    """
    text, bounds = (render_quantile_value(value), render_quantile_bounds(value)) if value else ("", UNKNOWN_VALUE)
    return {"quantile": value, "text": text, "bounds": bounds}


@register.filter
def bounds(value: Quantile) -> str:
    """Return the bounds and the number of answers of a quantile of times, such as [1.4 – open, n = 40]."""
    return render_quantile_bounds(value)


@register.inclusion_tag("_quantile.html")
def frozen_p95(row: Mapping[str, Any]) -> dict[str, object]:
    """Show the p95 of a row of a decision record, as saved."""
    p95 = row["p95_ms"]
    return quantile(Quantile(p95["value"], p95["low"], p95["high"], row["answered"], 0.95) if p95 else None)


@register.simple_tag
def answers_needed(percent: int) -> str:
    """Return the smallest number of answers with which no bound of a percentile is open: 72 for 95."""
    return str(count_more_answers_for_bounds(percent / 100, 0))


@register.simple_tag
def passes_needed(percent: int) -> str:
    """Return how many passes without a failure bring the lower bound to `percent`: 35 for 90."""
    return str(requirements.count_passes_without_failure(percent / 100))


@register.inclusion_tag("_mark.html")
def mark(outcome: str, word: str | None = None) -> dict[str, object]:
    """Show the shape and colour of an outcome with a word.

    Args:
        outcome: the outcome.
        word: text beside the shape; None for the usual word; empty to give that word to screen readers only.
    """
    label = OUTCOME_WORDS.get(outcome, outcome)
    return {"outcome": outcome, "word": label if word is None else word, "label": label}


@register.filter
def mark_of(word: str, default: str) -> str:
    """Return the outcome whose mark stands for a run's state or a cause's likelihood, else `default`."""
    return MARKS.get(word, default)


@register.filter
def split_first_sentence(text: str) -> tuple[str, str]:
    """Return the first sentence and the rest, which may be empty.

    A sentence ends at a full stop before a space, so a name such as `glm-4.7` does not end one.
    """
    first, stop, rest = text.partition(". ")
    return first + stop.strip(), rest


@register.simple_tag
def rate(value: Rate, kind: str = "") -> SafeString:
    """Show a rate with its interval. No line break follows, so that a full stop may be next to it.

    Args:
        value: the rate.
        kind: "wide" for a column of counts with three digits, "free" within a sentence; empty to choose the usual or
            the wide layout by the number of trials.
    """
    return mark_safe(render_to_string("_rate.html", _build_rate_context(value, kind)).strip())


def _build_rate_context(value: Rate, kind: str) -> dict[str, object]:
    context: dict[str, object] = {"rate": value, "width": kind or ("wide" if value.n > MAX_NARROW_TRIALS else "")}
    if value.withheld:
        title = "Repeats gave the same answers, so they are not independent and no interval is shown."
        return context | {"interval": value.withheld_text, "title": title, "notes": ()}
    notes = []
    title = f"Interval: {value.interval_name}."
    if value.error:
        notes.append("anytime-valid" if value.level == "95" else f"anytime-valid {value.level}\u00a0%")
        title = f"Anytime-valid {value.level} % interval: correct although the run could stop early."
    if value.weighted_share is not None:
        notes.append("equal weights")
        title += " Scenarios have equal weight, so the share is not that of all trials."
    return context | {"interval": f"[{value.low_percent}–{value.high_percent}]", "title": title, "notes": notes}


@register.simple_tag
def frozen_rate(row: Mapping[str, Any], kind: str = "") -> SafeString:
    """Show the end-to-end success of a row of a decision record, as saved."""
    return rate(build_frozen_rate(row), kind)


@register.inclusion_tag("_retries.html")
def retries(counts: Tally | RetryCounts, query: str = "") -> dict[str, object]:
    """Show the numbers of answers with status 429 and 5xx, the retries and the time of back-off.

    Args:
        counts: the counts.
        query: query string of the counted trials; empty for no link.
    """
    return {"counts": counts, "query": query}


@register.inclusion_tag("_ci.html")
def ci(value: Rate) -> dict[str, object]:
    """Show the interval of a rate as a bar, with a line at the target if the rate has one."""
    level = f"anytime-valid {value.level}" if value.error else "95"
    label = f"{level}\u00a0% interval {value.low_percent} to {value.high_percent}\u00a0%"
    return {"rate": value, "label": label, "target": f";--target:{value.target}" if value.target else ""}


@register.inclusion_tag("_dots.html")
def dots(counts: Mapping[str, int], failed_first: bool = False) -> dict[str, object]:
    """Show one dot per trial, 20 per line, ordered by outcome; above 200 trials, a bar of shares.

    Args:
        counts: number of trials by outcome.
        failed_first: True to start with failures.
    """
    first = ("fail", "infra", "pass") if failed_first else ("pass", "fail", "infra")
    order = (*first, "na", "cancelled", "running", "queued")
    groups = [DotGroup(name, counts[name]) for name in order if counts.get(name)]
    label = ", ".join(f"{group.count:,} {OUTCOME_WORDS[group.outcome]}" for group in groups) or "no trials"
    total = sum(group.count for group in groups)
    if total <= MAX_DOTS:
        return {"lines": _split_into_lines(groups), "shares": [], "label": label}
    shares = [DotGroup(group.outcome, 100 * group.count / total) for group in groups]
    return {"lines": [], "shares": shares, "label": label}


@register.simple_block_tag
def empty_state(content: str, title: str, url: str = "", action: str = "") -> SafeString:
    """Show a title and the block's text in the place of an empty list, with a link to the next step.

    Args:
        content: the block's text.
        title: the title.
        url: address of the link; empty for no link.
        action: text of the link.
    """
    return render_to_string("_empty.html", {"title": title, "text": content, "url": url, "action": action})


def _split_into_lines(groups: list[DotGroup]) -> list[list[DotGroup]]:
    """Split groups of dots into lines of 20 dots."""
    lines: list[list[DotGroup]] = [[]]
    free_dots = DOTS_PER_LINE
    for group in groups:
        remaining_dots = int(group.count)
        while remaining_dots:
            if not free_dots:
                lines.append([])
                free_dots = DOTS_PER_LINE
            count = min(remaining_dots, free_dots)
            lines[-1].append(DotGroup(group.outcome, count))
            remaining_dots, free_dots = remaining_dots - count, free_dots - count
    return lines
