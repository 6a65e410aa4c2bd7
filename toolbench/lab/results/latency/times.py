"""Times that are not stored with the cells, read from trials of the newest runs of each configuration."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from django.db.models import F

from toolbench.lab.models import Cell, Trial
from toolbench.lab.models.trials import ANSWERED
from toolbench.lab.results.latency.query import TIME_METRICS
from toolbench.lab.results.matrix.rows import MatrixRow
from toolbench.lab.scenarios.catalogue import ScenarioKey

ScenarioTimes = Mapping[str, Sequence[float] | np.ndarray]  # milliseconds of each trial, by scenario


def read_times(
    rows: Sequence[MatrixRow], scenarios: Sequence[frozenset[ScenarioKey]], metric: str, *, max_answers: int | None
) -> tuple[ScenarioTimes, ...]:
    """Return the times of the answered trials of each row by scenario, with two queries.

    Args:
        rows: rows of the matrix.
        scenarios: for each row, the scenarios and versions that count.
        metric: a key of TIME_METRICS.
        max_answers: once a row has this many answers, no older run is read for it; None reads all runs.
    """
    row_and_scenario_by_cell = _choose_cells(rows, scenarios, max_answers)
    times_by_row = tuple(defaultdict[str, list[float]](list) for _ in rows)
    trials = (
        Trial.objects.filter(ANSWERED, cell_id__in=row_and_scenario_by_cell)
        .order_by()
        .annotate(time=TIME_METRICS[metric][1])
    )
    for cell_id, time_ms in trials.exclude(time=None).values_list("cell_id", "time"):
        row_index, scenario = row_and_scenario_by_cell[cell_id]
        times_by_row[row_index][scenario].append(time_ms)
    return times_by_row


def _choose_cells(
    rows: Sequence[MatrixRow], scenarios: Sequence[frozenset[ScenarioKey]], max_answers: int | None
) -> Mapping[int, tuple[int, str]]:
    """Return the index of the row and the scenario of each cell to read, by cell id, with one query."""
    row_indices = {config_id: index for index, row in enumerate(rows) for config_id in row.config_ids}
    columns = ("pk", "config_id", "scenario", "scenario_version")
    answers = F("passed") + F("failed") - F("deadline_failed")
    cells = Cell.objects.filter(config_id__in=row_indices).order_by("-config_id", "pk").values_list(*columns, answers)
    answers_by_row, last_config_by_row = defaultdict[int, int](int), dict[int, int]()
    row_and_scenario_by_cell: dict[int, tuple[int, str]] = {}
    for pk, config_id, scenario, version, answer_count in cells:
        index = row_indices[config_id]
        is_next_run = last_config_by_row.get(index) != config_id
        is_full = max_answers is not None and is_next_run and answers_by_row[index] >= max_answers
        if (scenario, version) not in scenarios[index] or is_full:
            continue
        last_config_by_row[index] = config_id
        answers_by_row[index] += answer_count
        row_and_scenario_by_cell[pk] = (index, scenario)
    return row_and_scenario_by_cell
