"""Statistics of a bundle, computed only from the cells in the bundle."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolbench.engine.types import JsonObject
from toolbench.lab.interchange.bundle.selection import BundleSelection
from toolbench.lab.interchange.report.rates import build_cell_tallies, rate_to_json
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.scenario_groups import group_cells_by_config
from toolbench.lab.metrics.tally import Tally, tally_cells
from toolbench.lab.metrics.times import MIN_LEGACY_P95_ANSWERS, Times, load_cell_times, merge_times, times_to_json
from toolbench.lab.models import Cell, Provider, RunConfig
from toolbench.lab.runs.sequential_stopping import DECISION_TEXTS

INTERVAL_NOTE = "Intervals are 95 %. They apply to repeats of these scenarios only."
TIMES_NOTE = (
    "p50_ms_value, p95_ms_value and p99_ms_value are order statistics of the durations of trials with an answer; the "
    "time in the queue does not count. Keys that end in _low and _high have their distribution-free 95 % bounds; an "
    "open bound is null."
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
    "stream",
    "tool_use_mode",
    "policy_hash",
)


@dataclass(frozen=True, slots=True)
class CellStatistics:
    """Statistics of one cell.

    Attributes:
        scenario: slug of the scenario.
        control: whether the scenario is a control.
        tally: counts of the cell.
        answered: answered success.
        delivered: end-to-end success.
        times: durations of the trials with an answer.
        decided: why sequential stopping added no more trials, in words; empty if it has not ended the cell, or if the
            number of trials was fixed.
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
    """Statistics of one configuration in one group of scenarios.

    Attributes:
        config: the configuration.
        group: name of the group; empty if all configurations together have only one group.
        cells: cells of the configuration in the group.
        tally: sums of the counts of the tool scenarios, or of the controls if the group has no tool scenarios.
        answered: answered success of `tally`.
        delivered: end-to-end success of `tally`.
        control: answered success of the controls.
        times: durations of the trials with an answer, of the same cells as `tally`.
        cell_statistics: statistics of each cell.
    """

    config: RunConfig
    group: str
    cells: tuple[Cell, ...]
    tally: Tally
    answered: Rate
    delivered: Rate
    control: Rate
    times: Times
    cell_statistics: tuple[CellStatistics, ...]


def compute_config_statistics(selection: BundleSelection) -> tuple[ConfigStatistics, ...]:
    """Return the statistics of each configuration in each group of scenarios."""
    times = load_cell_times(selection.cells)
    return tuple(
        _build_config_statistics(config, group, cells, times)
        for config, group, cells in group_cells_by_config(selection.configs, selection.cells)
    )


def _build_config_statistics(
    config: RunConfig, group: str, cells: Sequence[Cell], times: Mapping[int, Times]
) -> ConfigStatistics:
    control = tally_cells(cell for cell in cells if cell.control)
    tools = tally_cells(cell for cell in cells if not cell.control)
    main_tally = tools if tools.cells else control
    cell_statistics = tuple(_build_cell_statistics(cell, times[cell.pk]) for cell in cells)
    return ConfigStatistics(
        config=config,
        group=group,
        cells=tuple(cells),
        tally=main_tally,
        answered=main_tally.compute_answered_success(),
        delivered=main_tally.compute_end_to_end_success(),
        control=control.compute_answered_success(),
        times=merge_times(cell.times for cell in cell_statistics if cell.control != bool(tools.cells)),
        cell_statistics=cell_statistics,
    )


def _build_cell_statistics(cell: Cell, times: Times) -> CellStatistics:
    tally = tally_cells([cell])
    return CellStatistics(
        scenario=cell.scenario,
        control=cell.control,
        tally=tally,
        answered=tally.compute_answered_success(),
        delivered=tally.compute_end_to_end_success(),
        times=times,
        decided=DECISION_TEXTS.get(cell.decided, ""),
    )


def build_matrix_json(config_statistics: Iterable[ConfigStatistics]) -> JsonObject:
    """Return the content of matrix.json, with one row for each configuration and group of scenarios.

    Each row has answered and end-to-end success, answered success of the controls, and the times.
    """
    rows = [
        {
            **{name: getattr(row.config, name) for name in _CONFIG_COLUMNS},
            "scenarios": row.group,
            "success_given_an_answer": rate_to_json(row.answered),
            "delivered_success": rate_to_json(row.delivered),
            "control": rate_to_json(row.control),
            **times_to_json(row.times),
        }
        for row in config_statistics
    ]
    return {"meaning": INTERVAL_NOTE, "rows": rows}


def build_statistics_json(config_statistics: Sequence[ConfigStatistics]) -> JsonObject:
    """Return the content of statistics.json.

    For each configuration and group it has the rates and quantiles of times; for each cell it has the counts, both
    success rates, distinct answers, tokens, cost and quantiles of times.
    """
    return {
        "meaning": INTERVAL_NOTE,
        "p95": f"null below {MIN_LEGACY_P95_ANSWERS} answers",
        "times": TIMES_NOTE,
        "configurations": [
            {
                "configuration": str(row.config),
                "simulated": row.config.provider_kind == Provider.Kind.SIMULATED,
                "scenarios": row.group,
                **build_cell_tallies(row.cells).to_json(),
                **times_to_json(row.times),
            }
            for row in config_statistics
        ],
        "cells": [_cell_to_json(row.config, cell) for row in config_statistics for cell in row.cell_statistics],
    }


def _cell_to_json(config: RunConfig, statistics: CellStatistics) -> JsonObject:
    tally, p50, p95 = statistics.tally, statistics.times.p50, statistics.times.p95
    sum_names = ("requests", "retries", "input_tokens", "output_tokens")
    return {
        "configuration": str(config),
        "simulated": config.provider_kind == Provider.Kind.SIMULATED,
        "scenario": statistics.scenario,
        "control": statistics.control,
        "outcomes": {name: count for name, count in tally.counts_by_outcome.items() if count},
        "success_given_an_answer": rate_to_json(statistics.answered),
        "delivered_success": rate_to_json(statistics.delivered),
        "distinct_answers": tally.distinct,
        "decided": statistics.decided,
        "interval_withheld": statistics.answered.withheld,
        "added_by_hand": tally.added_by_hand,
        "measured_while_saturated": tally.saturated,
        **{name: None if tally.uncomputed_cells else getattr(tally, name) for name in sum_names},
        "refused_and_sent_again": tally.retries_json,
        "cost": tally.cost,
        "p50_ms": p50 and p50.value,
        "p95_ms": p95.value if p95 and p95.n >= MIN_LEGACY_P95_ANSWERS else None,
        **times_to_json(statistics.times),
    }
