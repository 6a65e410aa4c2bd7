"""Rates and metrics of a report, for each group of scenarios."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolbench.engine.types import JsonObject
from toolbench.evals.statistics.rounding import round_half_up
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.scenario_groups import group_cells
from toolbench.lab.metrics.tally import Tally, tally_cells
from toolbench.lab.metrics.times import (
    Times,
    list_quantile_columns,
    list_quantile_values,
    load_cell_times,
    times_to_json,
)
from toolbench.lab.metrics.values import Metric, MetricValue, compute_metric
from toolbench.lab.models import Cell
from toolbench.lab.results.run.metrics import build_metric_input


@dataclass(frozen=True, slots=True)
class CellTallies:
    """Counts of cells, over all cells and separately for tool scenarios and controls.

    Attributes:
        overall: all cells.
        tools: cells of tool scenarios.
        control: cells of controls.
    """

    overall: Tally
    tools: Tally
    control: Tally

    def to_json(self) -> JsonObject:
        """Return the rates and counts of each attribute, by its name."""
        tallies = {"overall": self.overall, "tools": self.tools, "control": self.control}
        return {
            name: {
                "success_given_an_answer": rate_to_json(tally.compute_answered_success()),
                "delivered_success": rate_to_json(tally.compute_end_to_end_success()),
                "infrastructure": tally.infra,
                "not_applicable": tally.not_applicable,
                "cancelled": tally.cancelled,
                "distinct_answers": tally.distinct,
                "retries": tally.retries_json,
            }
            for name, tally in tallies.items()
        }


def build_metrics_json(cells: Sequence[Cell], times: Mapping[int, Times]) -> JsonObject:
    """Return every metric of one configuration's cells, with the text `Metric.denominator` under `of`.

    If nothing was counted or a value is unknown, the rate, interval, figure or quantile of the metric is null.

    Args:
        cells: cells of one configuration.
        times: times of trials by cell id.
    """
    counts = build_metric_input(cells, times)
    return {
        name: {"of": metric.denominator} | _value_to_json(metric, compute_metric(metric, counts))
        for name, metric in METRICS.items()
    }


def build_groups_json(cells: Sequence[Cell]) -> JsonObject:
    """Return the scenarios, rates, metrics and quantiles of times of each group of scenarios, by group name.

    Args:
        cells: cells of one configuration.
    """
    times = load_cell_times(cells)
    return {
        name: {
            "scenarios": list(dict.fromkeys(cell.scenario for cell in members)),
            "rates": build_cell_tallies(members).to_json(),
            "metrics": build_metrics_json(members, times),
            "times_by_scenario": {cell.scenario: times_to_json(times[cell.pk]) for cell in members},
        }
        for name, members in group_cells(cells).items()
    }


def find_in_only_group(groups: JsonObject, key: str) -> JsonObject | None:
    """Return the value of a key in the only group; None unless there is exactly one, since groups are never pooled."""
    values = [group[key] for group in groups.values()]
    return values[0] if len(values) == 1 else None


def explain_not_pooled(groups: JsonObject) -> str | None:
    """Return why the rates over all groups are null; None if there is at most one group."""
    return f"the rates of {len(groups)} groups of scenarios are not pooled: see groups" if len(groups) > 1 else None


def _value_to_json(metric: Metric, value: MetricValue) -> JsonObject:
    if value.rate is not None:
        return rate_to_json(value.rate)
    if metric.is_rate:
        return dict.fromkeys(("k", "n", "rate", "low", "high", "interval"))
    figure, quantile = value.figure, value.quantile
    estimate_fields = {"low": figure and figure.low, "high": figure and figure.high, "unit": figure and figure.unit}
    if not metric.quantile:
        return estimate_fields
    return estimate_fields | dict(zip(list_quantile_columns(metric.name), list_quantile_values(quantile), strict=True))


def build_cell_tallies(cells: Sequence[Cell]) -> CellTallies:
    """Return the counts of cells, over all of them and separately for tool scenarios and controls."""
    return CellTallies(
        overall=tally_cells(cells),
        tools=tally_cells(cell for cell in cells if not cell.control),
        control=tally_cells(cell for cell in cells if cell.control),
    )


def rate_to_json(rate: Rate) -> JsonObject:
    """Return a rate with its counts, its interval and the name of the interval; rate and interval are fractions.

    Rate and interval are null if `rate.n` is 0. A withheld interval is null too.
    """
    share = round_half_up(rate.k / rate.n, 4) if rate.n else None
    has_interval = bool(rate.n) and not rate.withheld
    bounds = (
        {"low": round_half_up(rate.low, 4), "high": round_half_up(rate.high, 4)}
        if has_interval
        else {"low": None, "high": None}
    )
    return {"k": rate.k, "n": rate.n, "rate": share, **bounds, "interval": rate.interval_name if has_interval else None}
