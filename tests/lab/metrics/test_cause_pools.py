"""Trials by cause: stored pools give the same lines as the trials, after every kind of change."""

from dataclasses import astuple

import pytest
from django.utils import timezone

from tests.factories import make_cell, make_config, make_model, make_run, make_trial, recompute_stale_cells
from toolbench.lab.metrics import cause_pools
from toolbench.lab.metrics.cause_pools import CauseLine, CauseScope, CauseSums, sum_causes
from toolbench.lab.metrics.cells import mark_stale, recompute_all_stale
from toolbench.lab.metrics.pools import refresh_pools
from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.models import CausePool, Run, Trial

pytestmark = pytest.mark.django_db


def end_run(model: str, causes: list[str], **fields: str) -> Run:
    """Return an ended run with one failed trial for each cause, and one that passed."""
    run = make_run(state=Run.State.FINISHED)
    cell = make_cell(make_config(run, make_model(model), **fields))
    make_trial(cell, taxonomy=2)
    for cause in causes:
        signature = f"{cause} · happy_path · $ · turn 1"
        make_trial(cell, "fail", cause=cause, cause_signature=signature, taxonomy=2, finished_at=timezone.now())
    recompute_stale_cells()
    return run


def sum_by_key(lines: tuple[CauseLine, ...]) -> dict[tuple[object, ...], list[object]]:
    """Return count, first trial and runs by everything else of a line."""
    found: dict[tuple[object, ...], list[object]] = {}
    for line in lines:
        key = astuple(line)[:12]
        count, first, runs = found.get(key, [0, line.first_trial, set()])
        assert isinstance(count, int)
        assert isinstance(first, int)
        assert isinstance(runs, set)
        found[key] = [count + line.count, min(first, line.first_trial), runs | line.run_ids]
    return found


def read_both(result_filter: ResultFilter = NO_FILTER) -> tuple[dict[tuple[object, ...], list[object]], ...]:
    """Return what pages read, and the same counted from the trials alone."""
    scope = CauseScope(result_filter)
    return sum_by_key(sum_causes(scope).lines), sum_by_key(cause_pools._sum_trials(scope, scope.filter_runs()))


def test_sum_causes_of_pooled_runs_equals_their_trials() -> None:
    end_run("vendor/a", ["no_call", "no_call", "schema_type"])
    end_run("vendor/a", ["no_call"], profile="calm")
    end_run("vendor/b", ["schema_type"])
    assert refresh_pools() == 3
    assert CausePool.objects.count() == 7
    for result_filter in (
        NO_FILTER,
        ResultFilter(models=("vendor/a",)),
        ResultFilter(profiles=("calm",), scenarios=("x",)),
    ):
        stored, expected = read_both(result_filter)
        assert stored == expected
    assert sum_causes(CauseScope(NO_FILTER)).version is not None


def test_sum_causes_run_in_progress_is_added() -> None:
    end_run("vendor/a", ["no_call"])
    refresh_pools()
    make_trial(
        make_cell(make_config(make_run(state=Run.State.RUNNING), make_model("vendor/a"))), "fail", cause="no_call"
    )
    stored, expected = read_both()
    assert stored == expected
    assert sum_causes(CauseScope(NO_FILTER)).version is None


def test_sum_causes_changed_cause_counts_before_and_after_the_refresh() -> None:
    run = end_run("vendor/a", ["no_call"])
    refresh_pools()
    trial = Trial.objects.get(run=run, cause="no_call")
    Trial.objects.filter(pk=trial.pk).update(cause="schema_type")
    mark_stale([trial.cell_id])
    for step in (lambda: None, recompute_all_stale, refresh_pools):
        step()
        stored, expected = read_both()
        assert stored == expected
        assert {key[8] for key in stored} == {"", "schema_type"}


def test_sum_causes_deleted_run_is_not_counted() -> None:
    run = end_run("vendor/a", ["no_call"])
    end_run("vendor/a", ["schema_type"])
    refresh_pools()
    Run.objects.filter(pk=run.pk).update(deleted_at=timezone.now())
    for _ in range(2):
        stored, expected = read_both()
        assert stored == expected
        assert {key[8] for key in stored} == {"", "schema_type"}
        refresh_pools()


def test_sum_causes_of_named_run_counts_only_that_run() -> None:
    run = end_run("vendor/a", ["no_call"])
    end_run("vendor/a", ["schema_type"])
    refresh_pools()
    found = sum_causes(CauseScope(NO_FILTER, simulated=True, runs=(run.pk,)))
    assert {line.cause for line in found.lines} == {"", "no_call"}
    assert found.version is not None


def test_sum_causes_of_all_runs_by_name_equals_the_pools() -> None:
    runs = [end_run("vendor/a", ["no_call", "no_call"]), end_run("vendor/a", ["no_call", "schema_type"])]
    refresh_pools()
    named = sum_causes(CauseScope(NO_FILTER, runs=tuple(run.pk for run in runs)))
    assert sum_by_key(named.lines) == sum_by_key(sum_causes(CauseScope(NO_FILTER)).lines)


def test_sum_causes_of_a_playground_run_is_the_same_after_the_refresh() -> None:
    end_run("vendor/a", ["no_call"])
    refresh_pools()
    run = end_run("vendor/b", ["schema_type"])
    Run.objects.filter(pk=run.pk).update(purpose=Run.PLAYGROUND)
    for _ in range(2):
        found = sum_causes(CauseScope(NO_FILTER, simulated=True, runs=(run.pk,)))
        assert {line.cause for line in found.lines} == {"", "schema_type"}
        refresh_pools()


def test_sum_causes_of_a_run_without_finished_trials_has_no_version() -> None:
    end_run("vendor/a", ["no_call"])
    refresh_pools()
    run = make_run(state=Run.State.RUNNING)
    assert sum_causes(CauseScope(NO_FILTER, runs=(run.pk,))) == CauseSums((), None)
