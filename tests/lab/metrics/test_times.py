"""Times are stored sorted beside each cell, and quantiles of any pool of cells are exactly those of its trials."""

import re
import struct
from pathlib import Path
from random import Random

import pytest

from tests.factories import make_cell, make_config, make_run, make_trial, recompute_stale_cells
from toolbench.evals.statistics import compute_quantile
from toolbench.lab.metrics.cells import mark_stale
from toolbench.lab.metrics.times import (
    QuantileRange,
    Times,
    find_quantile_range,
    find_value_range,
    load_cell_times,
    merge_times,
    times_to_json,
)
from toolbench.lab.models import Cell, CellTimes, Trial

SOURCES = Path(__file__).resolve().parents[3] / "toolbench"
# Calls that compute a quantile by another rule: interpolated, or in the database.
OTHER_RULES = re.compile(r"percentile_cont|np\.(?:nan)?(?:quantile|percentile|median)\(|\b(?:median|quantiles)\(")


def make_empty_cell(scenario: str = "happy_path") -> Cell:
    return make_cell(make_config(make_run()), scenario)


@pytest.mark.django_db
def test_merge_times_gives_quantiles_of_all_trials() -> None:
    drawn = Random(11)
    cells = [make_empty_cell() for _ in range(3)]
    for cell, count in zip(cells, (1, 20, 60), strict=True):
        for _ in range(count):
            time = drawn.lognormvariate(7, 1)
            make_trial(cell, duration_ms=time, first_token_ms=time / 3)
    recompute_stale_cells()
    times = [trial.duration_ms or 0.0 for trial in Trial.objects.all()]
    tokens = [trial.first_token_ms or 0.0 for trial in Trial.objects.all()]

    found = merge_times(load_cell_times(cells).values())

    assert (found.p50, found.p95, found.p99) == tuple(compute_quantile(times, q) for q in (0.5, 0.95, 0.99))
    assert found.first_token == compute_quantile(tokens, 0.5)


@pytest.mark.django_db
def test_load_cell_times_equals_values_of_cell() -> None:
    cell = make_empty_cell()
    for index in range(8):
        make_trial(cell, duration_ms=1000.0 * index, first_token_ms=10.0 * index)
    make_trial(cell, "infra", duration_ms=9e9)
    make_trial(cell, "fail", end="DEADLINE_EXCEEDED", duration_ms=600_000.0)
    recompute_stale_cells()
    cell.refresh_from_db()

    found = load_cell_times([cell])[cell.pk]

    stored = (cell.p50_ms, cell.p95_ms, cell.first_token_p50_ms)
    assert stored == tuple(item and item.value for item in (found.p50, found.p95, found.first_token))
    assert stored == (3000.0, 7000.0, 30.0)


@pytest.mark.django_db
def test_load_cell_times_after_changed_trial_is_empty() -> None:
    cell, empty = make_empty_cell(), make_empty_cell()
    trial = make_trial(cell, duration_ms=5.0)
    recompute_stale_cells()
    Trial.objects.filter(pk=trial.pk).update(outcome="infra")
    mark_stale([cell.pk])
    recompute_stale_cells()

    assert load_cell_times([cell, empty]) == {cell.pk: Times(), empty.pk: Times()}
    assert Times().p50 is None


@pytest.mark.django_db
def test_recompute_cell_with_impossible_times_is_set_aside() -> None:
    cell = make_empty_cell()
    for _ in range(100):
        make_trial(cell)
    Trial.objects.filter(pk=make_trial(cell).pk).update(duration_ms=float("nan"))
    recompute_stale_cells()
    cell.refresh_from_db()

    assert cell.compute_error == "cost or time out of range"
    assert not CellTimes.objects.filter(cell=cell).exists()


def test_find_value_range_omits_cells_with_few_answers() -> None:
    few, many = (_times(*range(1, count + 1)) for count in (5, 9))

    assert find_value_range([few, many], lambda times: times.p95) == (5.0, 9.0)
    assert find_value_range([few, many], lambda times: times.p95, min_answers=6) == (9.0, 9.0)
    assert find_value_range([few, Times()], lambda times: times.p95, min_answers=6) is None


@pytest.mark.parametrize("q", [0.5, 0.95])
def test_find_quantile_range_names_fastest_and_slowest(q: float) -> None:
    slow, fast, middle = ([scale * step for step in range(80, 0, -1)] for scale in (9.0, 1.0, 5.0))

    found = find_quantile_range([_times(*slow), Times(), _times(*fast), _times(*middle)], q)

    assert found == QuantileRange(compute_quantile(fast, q), compute_quantile(slow, q))
    assert find_quantile_range([_times(*slow)], q) == QuantileRange(compute_quantile(slow, q), None)
    assert find_quantile_range([Times()], q) is None


def test_times_to_json_open_bounds_are_null() -> None:
    found = times_to_json(_times(*range(1, 73)))

    assert (found["p95_ms_value"], found["p95_ms_low"], found["p95_ms_high"]) == (69.0, 64.0, 72.0)
    assert (found["p99_ms_value"], found["p99_ms_high"]) == (72.0, None)
    assert set(times_to_json(Times()).values()) == {None}


def test_product_sources_have_no_other_quantile_rule() -> None:
    paths = (path for path in SOURCES.rglob("*.py") if "migrations" not in path.parts)

    assert [path.name for path in paths if OTHER_RULES.search(path.read_text("utf-8"))] == []


def _times(*durations: float) -> Times:
    return Times(struct.pack(f">{len(durations)}d", *durations))
