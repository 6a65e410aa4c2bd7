"""Figures of a bundle, computed from the cells that are in it and not from those left out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolbench.engine.types import JsonObject
from toolbench.lab.interchange.bundle.selection import BundleSelection
from toolbench.lab.interchange.report.rates import compute_rates, rate_to_json
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.scenario_groups import group_cells_by_config
from toolbench.lab.metrics.tally import Tally, tally_cells
from toolbench.lab.metrics.times import MIN_LEGACY_P95_ANSWERS, Times, load_cell_times, merge_times, times_to_json
from toolbench.lab.models import Cell, Provider, RunConfig
from toolbench.lab.runs.sequential_stopping import DECISION_TEXTS

INTERVAL_NOTE = "Intervals are 95 %. They apply to repeats of these scenarios only."
TIMES_NOTE = (
    "p50_ms_value, p50_ms_low, p50_ms_high, and so on: the order statistic of trials with an answer, without queue, "
    "and its distribution-free 95 % bounds; null for a bound that is open."
)
_CONFIG_COLUMNS = (
    "provider_name",
    "provider_kind",
    "model_name",
    "canonical",
    "profile",
    "strategy",
    "method",
    "examples",
)


@dataclass(frozen=True, slots=True)
class CellStatistics:
    """Figures of one cell.

    Attributes:
        tally: its counts.
        answered: answered success.
        delivered: end-to-end success.
        decided: why sequential stopping ended the cell, in words; "" if the number of trials was fixed.
    """

    scenario: str
    control: bool
    tally: Tally
    answered: Rate
    delivered: Rate
    times: Times
    decided: str


@dataclass(frozen=True, slots=True)
class ConfigStatistics:
    """Figures of one configuration in one group of scenarios.

    Attributes:
        group: name of the group; "" if there is only one.
        rows: its cells.
        tally: sums over the tool scenarios, or over the controls if there are no others.
        answered: answered success of `tally`.
        delivered: end-to-end success of `tally`.
        control: answered success of the controls.
        times: times of the same cells as `tally`.
        cells: figures of each cell.
    """

    config: RunConfig
    group: str
    rows: tuple[Cell, ...]
    tally: Tally
    answered: Rate
    delivered: Rate
    control: Rate
    times: Times
    cells: tuple[CellStatistics, ...]


def compute_config_statistics(chosen: BundleSelection) -> tuple[ConfigStatistics, ...]:
    """Return the figures of each configuration in each group of scenarios."""
    times = load_cell_times(chosen.cells)
    return tuple(
        _build_config_statistics(*group, times) for group in group_cells_by_config(chosen.configs, chosen.cells)
    )


def _build_config_statistics(
    config: RunConfig, group: str, cells: Sequence[Cell], times: Mapping[int, Times]
) -> ConfigStatistics:
    control = tally_cells(cell for cell in cells if cell.control)
    tools = tally_cells(cell for cell in cells if not cell.control)
    main = tools if tools.cells else control
    lines = tuple(_build_cell_statistics(cell, times[cell.pk]) for cell in cells)
    return ConfigStatistics(
        config=config,
        group=group,
        rows=tuple(cells),
        tally=main,
        answered=main.answered_success(),
        delivered=main.delivered(),
        control=control.answered_success(),
        times=merge_times(line.times for line in lines if line.control != bool(tools.cells)),
        cells=lines,
    )


def _build_cell_statistics(cell: Cell, times: Times) -> CellStatistics:
    counts = tally_cells([cell])
    return CellStatistics(
        scenario=cell.scenario,
        control=cell.control,
        tally=counts,
        answered=counts.answered_success(),
        delivered=counts.delivered(),
        times=times,
        decided=DECISION_TEXTS.get(cell.decided, ""),
    )


def build_matrix_json(lines: Iterable[ConfigStatistics]) -> JsonObject:
    """Return the content of matrix.json, with a row per configuration and group of scenarios.

    Each row has the rates with intervals, of tool scenarios and of controls separately, and the times.
    """
    rows = [
        {
            **{
                name: getattr(line.config, name)
                for name in (*_CONFIG_COLUMNS, "stream", "tool_use_mode", "policy_hash")
            },
            "scenarios": line.group,
            "success_given_an_answer": rate_to_json(line.answered),
            "delivered_success": rate_to_json(line.delivered),
            "control": rate_to_json(line.control),
            **times_to_json(line.times),
        }
        for line in lines
    ]
    return {"meaning": INTERVAL_NOTE, "rows": rows}


def build_statistics_json(lines: Sequence[ConfigStatistics]) -> JsonObject:
    """Return the content of statistics.json.

    It has every cell with its counts, both rates, distinct answers and times, and the rates and times of
    configurations.
    """
    return {
        "meaning": INTERVAL_NOTE,
        "p95": f"null below {MIN_LEGACY_P95_ANSWERS} answers",
        "times": TIMES_NOTE,
        "configurations": [
            {
                "configuration": str(line.config),
                "simulated": line.config.provider_kind == Provider.Kind.SIMULATED,
                "scenarios": line.group,
                **compute_rates(line.rows).to_json(),
                **times_to_json(line.times),
            }
            for line in lines
        ],
        "cells": [_cell_to_json(line.config, cell) for line in lines for cell in line.cells],
    }


def _cell_to_json(config: RunConfig, cell: CellStatistics) -> JsonObject:
    counts, p50, p95 = cell.tally, cell.times.p50, cell.times.p95
    sums = ("requests", "retries", "input_tokens", "output_tokens")
    return {
        "configuration": str(config),
        "simulated": config.provider_kind == Provider.Kind.SIMULATED,
        "scenario": cell.scenario,
        "control": cell.control,
        "outcomes": {name: count for name, count in counts.dots.items() if count},
        "success_given_an_answer": rate_to_json(cell.answered),
        "delivered_success": rate_to_json(cell.delivered),
        "distinct_answers": counts.distinct,
        "decided": cell.decided,
        "interval_withheld": cell.answered.withheld,
        "added_by_hand": counts.added_by_hand,
        "measured_while_saturated": counts.saturated,
        **{name: None if counts.set_aside else getattr(counts, name) for name in sums},
        "refused_and_sent_again": counts.retries_json,
        "cost": counts.cost,
        "p50_ms": p50 and p50.value,
        "p95_ms": p95.value if p95 and p95.n >= MIN_LEGACY_P95_ANSWERS else None,
        **times_to_json(cell.times),
    }
