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
from toolbench.lab.results.run.index import get_run_list, get_runs

pytestmark = pytest.mark.django_db


def test_the_list_has_the_sums_of_the_rows_themselves() -> None:
    run = make_run()
    config = make_config(run)
    make_trials(make_cell(config), **{"pass": 3, "fail": 1, "infra": 2})
    make_trials(make_cell(config, "chat_only"), **{"fail": 2})
    line = get_runs("own")[0]
    assert (line.tally, line.models) == (tally_cells(run.cells.all()), (config.model_name,))
    assert line.answered is not None
    assert line.delivered is not None
    assert (line.answered.k, line.answered.n, line.delivered.n) == (3, 4, 6)


def test_a_list_gives_no_rate_over_several_configurations() -> None:
    run = make_run()
    for _ in range(2):
        make_trials(make_cell(make_config(run)), **{"pass": 2})
    assert (get_runs("own")[0].answered, get_runs("own")[0].delivered) == (None, None)


def test_simulated_runs_have_a_list_of_their_own() -> None:
    real, simulated = make_run(), make_run(simulated=True)
    assert [line.run for line in get_runs("own")] == [real]
    assert [line.run for line in get_runs("simulated")] == [simulated]


def timed_config(run: Run, kind: str, **times: float) -> None:
    config = make_config(run, make_model(provider=make_provider(f"A {kind} one", kind=kind)), provider_kind=kind)
    for scenario, time in times.items():
        make_trial(make_cell(config, scenario), duration_ms=time)


def test_run_list_times_range_over_configurations() -> None:
    run = make_run()
    timed_config(run, Provider.Kind.OPENAI, happy_path=100.0, type_error_recovery=300.0, chat_only=9_000.0)
    timed_config(run, Provider.Kind.OPENAI, happy_path=700.0)
    timed_config(run, Provider.Kind.LOCAL, happy_path=5_000.0)
    recompute_stale_cells()
    line = get_runs("own")[0]
    assert line.p50 == QuantileRange(compute_quantile([100.0, 300.0], 0.5), compute_quantile([700.0], 0.5))
    assert line.p95 == QuantileRange(compute_quantile([100.0, 300.0], 0.95), compute_quantile([700.0], 0.95))


def test_run_list_times_leave_out_controls_and_the_local_model() -> None:
    run = make_run()
    timed_config(run, Provider.Kind.LOCAL, happy_path=5_000.0)
    timed_config(run, Provider.Kind.OPENAI, chat_only=9_000.0)
    recompute_stale_cells()
    line = get_runs("own")[0]
    assert (line.p50, line.p95) == (None, None)


def test_run_list_reads_no_times_to_the_first_token() -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 2})
    with CaptureQueriesContext(connection) as queries:
        (line,) = get_runs("own")
    assert line.p50 is not None
    read = [query["sql"] for query in queries]
    assert any("durations" in sql for sql in read)
    assert not any("first_tokens" in sql for sql in read)


def test_run_list_reads_a_page_of_many_runs_with_few_queries() -> None:
    for _ in range(60):
        make_trials(make_cell(make_config(make_run(label="many"))), **{"pass": 1})
    with CaptureQueriesContext(connection) as queries:
        runs = get_run_list("own", label="many", page=2)
    assert (runs.total, len(runs.rows), runs.previous_page, runs.next_page) == (60, 10, 1, None)
    assert runs.labels == ("many",)
    assert len(queries) <= 6


def test_tokens_of_a_run_with_unknown_sums_are_unknown() -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 2})
    assert get_runs("own")[0].tokens == 920
    cell.refresh_from_db()
    cell.compute_error = "out of range"
    cell.save()
    assert get_runs("own")[0].tokens is None
