"""The cells of one run, read once for a page."""

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_model, make_run, make_trials, recompute_stale_cells
from toolbench.lab.metrics.cells import mark_stale
from toolbench.lab.metrics.pools import refresh_pools, sum_cells
from toolbench.lab.metrics.tally import build_tally
from toolbench.lab.metrics.times import build_times
from toolbench.lab.models import Cell, Run
from toolbench.lab.results.run.cells import read_run_cells

pytestmark = pytest.mark.django_db


def make_ended_run() -> Run:
    run = make_run(state=Run.State.FINISHED)
    for name in ("a", "b"):
        config = make_config(run, make_model(name))
        make_trials(make_cell(config), **{"pass": 3, "fail": 1, "infra": 2})
        make_trials(make_cell(config, "chat_only"), **{"pass": 2})
        make_cell(config, "type_error_recovery")
    recompute_stale_cells()
    return run


def test_run_cells_sum_rows_equal_the_sums_over_the_cells() -> None:
    run = make_ended_run()
    expected = sum_cells(Cell.objects.filter(run=run))
    found = sorted(read_run_cells(run.pk).build_sum_rows(), key=lambda row: (row["model_name"], row["scenario"]))
    expected.sort(key=lambda row: (row["model_name"], row["scenario"]))
    derived = {"all_durations", "all_first_tokens"} | {name for name in expected[0] if name.startswith("sum_")}
    for row, summed in zip(found, expected, strict=True):
        assert row.keys() == summed.keys()
        assert build_tally(row) == build_tally(summed)
        assert build_times(row) == build_times(summed)
        assert {name: row[name] for name in row.keys() - derived} == {
            name: summed[name] for name in row.keys() - derived
        }


def test_read_run_cells_of_ended_run_is_cached_until_a_cell_changes(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    run = make_ended_run()
    refresh_pools()
    first = read_run_cells(run.pk)
    with django_assert_num_queries(3):
        cached = read_run_cells(run.pk)
    assert cached.version is not None
    assert cached.cells is first.cells
    cell = Cell.objects.filter(run=run)[0]
    make_trials(cell, fail=1)
    mark_stale([cell.pk])
    recompute_stale_cells()
    changed = read_run_cells(run.pk)
    assert changed.version is None
    assert sum(cell.failed for cell in changed.cells) == 3


def test_read_run_cells_of_a_running_run_is_not_cached() -> None:
    run = make_run(state=Run.State.RUNNING)
    make_trials(make_cell(make_config(run)), **{"pass": 1, "queued": 1})
    refresh_pools()
    assert read_run_cells(run.pk).version is None
