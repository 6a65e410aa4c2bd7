"""Times of trials that are not stored beside the cells, read from the newest runs of each configuration."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from toolbench.lab.models import Cell, Trial
from toolbench.lab.models.trials import ANSWERED
from toolbench.lab.results.latency.query import TIME_METRICS
from toolbench.lab.results.matrix.rows import MatrixRow
from toolbench.lab.scenarios.catalogue import ScenarioKey

ScenarioValues = Mapping[str, Sequence[float] | np.ndarray]  # milliseconds by scenario


def read_times(
    rows: Sequence[MatrixRow], scenarios: Sequence[frozenset[ScenarioKey]], metric: str, *, max_answers: int | None
) -> tuple[ScenarioValues, ...]:
    """Return the times of each row by scenario, with two queries.

    Args:
        rows: rows of the matrix.
        scenarios: the scenarios of each row, with the version that counts.
        metric: a key of TIME_METRICS.
        max_answers: the newest runs of a row are read until they have so many answers; None for all runs.
    """
    rows_by_config = {config_id: place for place, row in enumerate(rows) for config_id in row.config_ids}
    columns = ("pk", "config_id", "scenario", "scenario_version", "passed", "failed")
    cells = Cell.objects.filter(config_id__in=rows_by_config).order_by("-config_id", "pk").values_list(*columns)
    counts, last, chosen = defaultdict[int, int](int), dict[int, int](), dict[int, tuple[int, str]]()
    for pk, config_id, scenario, version, passed, failed in cells:
        place = rows_by_config[config_id]
        is_new_run = last.get(place) != config_id
        if (scenario, version) not in scenarios[place] or (max_answers and is_new_run and counts[place] >= max_answers):
            continue
        last[place] = config_id
        counts[place] += passed + failed
        chosen[pk] = (place, scenario)
    found = tuple(defaultdict[str, list[float]](list) for _ in rows)
    trials = Trial.objects.filter(ANSWERED, cell_id__in=chosen).order_by().annotate(time=TIME_METRICS[metric][1])
    for cell_id, time in trials.exclude(time=None).values_list("cell_id", "time"):
        place, scenario = chosen[cell_id]
        found[place][scenario].append(time)
    return found
