"""List of runs with their sums."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import (
    make_cell,
    make_config,
    make_model,
    make_provider,
    make_run,
    make_trial,
    make_trials,
    recompute_stale_cells,
)
from toolbench.evals.statistics import compute_quantile
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.metrics.times import QuantileRange
from toolbench.lab.models import Provider, Run
from toolbench.lab.results.run.index import get_run_list, get_runs, list_runs_before

pytestmark = pytest.mark.django_db


def test_run_list_row_has_the_sums_of_its_cells() -> None:
    run = make_run()
    config = make_config(run)
    make_trials(make_cell(config), **{"pass": 3, "fail": 1, "infra": 2})
    make_trials(make_cell(config, "chat_only"), **{"fail": 2})
    row = get_runs("own")[0]
    assert (row.tally, row.models) == (tally_cells(run.cells.all()), (config.model_name,))
    assert row.answered is not None
    assert row.delivered is not None
    assert (row.answered.k, row.answered.n, row.delivered.n) == (3, 4, 6)


def test_run_list_row_of_several_configurations_has_no_rate() -> None:
    run = make_run()
    for _ in range(2):
        make_trials(make_cell(make_config(run)), **{"pass": 2})
    row = get_runs("own")[0]
    assert (row.config_count, row.answered, row.delivered) == (2, None, None)


def test_get_runs_lists_simulated_runs_separately() -> None:
    real, simulated = make_run(), make_run(simulated=True)
    assert [row.run for row in get_runs("own")] == [real]
    assert [row.run for row in get_runs("simulated")] == [simulated]


def make_timed_config(run: Run, kind: str, **times: float) -> None:
    config = make_config(run, make_model(provider=make_provider(f"A {kind} one", kind=kind)), provider_kind=kind)
    for scenario, duration_ms in times.items():
        make_trial(make_cell(config, scenario), duration_ms=duration_ms)


def test_run_list_times_range_over_configurations() -> None:
    run = make_run()
    make_timed_config(run, Provider.Kind.OPENAI, happy_path=100.0, type_error_recovery=300.0, chat_only=9_000.0)
    make_timed_config(run, Provider.Kind.OPENAI, happy_path=700.0)
    make_timed_config(run, Provider.Kind.LOCAL, happy_path=5_000.0)
    recompute_stale_cells()
    row = get_runs("own")[0]
    assert row.p50 == QuantileRange(compute_quantile([100.0, 300.0], 0.5), compute_quantile([700.0], 0.5))
    assert row.p95 == QuantileRange(compute_quantile([100.0, 300.0], 0.95), compute_quantile([700.0], 0.95))


def test_run_list_times_exclude_controls_and_the_local_model() -> None:
    run = make_run()
    make_timed_config(run, Provider.Kind.LOCAL, happy_path=5_000.0)
    make_timed_config(run, Provider.Kind.OPENAI, chat_only=9_000.0)
    recompute_stale_cells()
    row = get_runs("own")[0]
    assert (row.p50, row.p95) == (None, None)


def test_run_list_reads_no_times_to_the_first_token() -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 2})
    with CaptureQueriesContext(connection) as queries:
        (row,) = get_runs("own")
    assert row.p50 is not None
    statements = [query["sql"] for query in queries]
    assert any("durations" in sql for sql in statements)
    assert not any("first_tokens" in sql for sql in statements)


def test_list_runs_before_reads_no_times() -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 2})
    recompute_stale_cells()
    with CaptureQueriesContext(connection) as queries:
        (row,) = list_runs_before(None, limit=10)
    assert len(queries) == 2
    assert (row.tally.passed, row.p50, row.p95) == (2, None, None)
    assert get_runs("own")[0].p50 is not None


def test_run_list_page_of_many_runs_takes_at_most_six_queries() -> None:
    for _ in range(60):
        make_trials(make_cell(make_config(make_run(label="many"))), **{"pass": 1})
    with CaptureQueriesContext(connection) as queries:
        runs = get_run_list("own", label="many", page=2)
    assert (runs.total, len(runs.rows), runs.previous_page, runs.next_page) == (60, 10, 1, None)
    assert runs.labels == ("many",)
    assert len(queries) <= 6


def test_run_list_tokens_with_a_cell_error_are_unknown() -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 2})
    assert get_runs("own")[0].tokens == 920
    cell.refresh_from_db()
    cell.compute_error = "out of range"
    cell.save()
    assert get_runs("own")[0].tokens is None
