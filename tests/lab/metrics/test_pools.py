"""Stored sums over ended runs equal the sums over their cells, after every kind of change."""

from collections.abc import Iterable
from typing import Any

import pytest
from django.utils import timezone

from tests.factories import make_cell, make_config, make_model, make_run, make_trial, make_trials
from toolbench.lab.metrics.cells import mark_stale, recompute_all_stale
from toolbench.lab.metrics.pools import (
    SUM_ROW_KEY,
    SumRow,
    list_choices,
    merge_rows,
    refresh_pools,
    sum_all_runs,
    sum_cells,
)
from toolbench.lab.metrics.result_filter import NO_FILTER
from toolbench.lab.models import Cell, CellPool, Run, RunChange, Trial

pytestmark = pytest.mark.django_db
ENDED = Run.State.FINISHED


def end_run(name: str, outcomes: dict[str, int], *, purpose: str = "", kind: str = "drawn") -> Run:
    """Return an ended run of one model with a cell of trials, which all have the same instance."""
    run = make_run(state=ENDED, purpose=purpose)
    cell = make_cell(make_config(run, make_model(name)), instance_kind=kind)
    make_trials(cell, **outcomes)
    Trial.objects.filter(cell=cell).update(instance_kind=kind, instance_seed=7)
    mark_stale([cell.pk])
    recompute_all_stale()
    return run


def read_comparable(lines: Iterable[SumRow]) -> list[dict[str, Any]]:
    """Return lines without what only pools have, with times in order."""
    found = []
    for line in merge_rows(lines, SUM_ROW_KEY):
        kept = {name: value for name, value in line.items() if name not in ("repeated", "cell_ids")}
        times = bytes(kept.pop("all_durations") or b"")
        kept.pop("all_first_tokens")
        parts = sorted(times[start : start + 8] for start in range(0, len(times), 8))
        found.append({**kept, "times": parts, "cells": sorted(line["cell_ids"])})
    return found


def read_both() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the sums as pages read them, and those over the cells."""
    kept = sum_all_runs(NO_FILTER, simulated=False, imported=False)
    return read_comparable(kept.rows), read_comparable(sum_cells(Cell.objects.filter(run__deleted_at=None)))


def test_sum_all_runs_of_pooled_runs_equals_their_cells() -> None:
    end_run("vendor/a", {"pass": 3, "fail": 1, "infra": 1})
    end_run("vendor/a", {"pass": 2})
    end_run("vendor/b", {"fail": 2})
    end_run("vendor/a", {"pass": 4}, purpose="confirm")
    assert refresh_pools() == 4
    stored, expected = read_both()
    assert stored == expected
    assert CellPool.objects.count() == 3
    assert sum_all_runs(NO_FILTER, simulated=False, imported=False).version is not None


def test_sum_all_runs_adds_runs_in_progress() -> None:
    end_run("vendor/a", {"pass": 3})
    refresh_pools()
    make_trials(make_cell(make_config(make_run(), make_model("vendor/a"))), **{"pass": 1, "queued": 2})
    stored, expected = read_both()
    assert stored == expected
    assert sum_all_runs(NO_FILTER, simulated=False, imported=False).version is None


def test_sum_all_runs_merges_running_trials_into_pool_of_config() -> None:
    end_run("vendor/a", {"pass": 3}, kind="parity")
    refresh_pools()
    make_trials(make_cell(make_config(make_run(), make_model("vendor/a"))), **{"pass": 1, "queued": 2})
    stored, expected = read_both()
    assert stored == expected
    assert len(stored) == 1


def test_sum_all_runs_counts_changed_trial_before_and_after_refresh() -> None:
    run = end_run("vendor/a", {"pass": 3})
    refresh_pools()
    trial = Trial.objects.filter(run=run)[0]
    Trial.objects.filter(pk=trial.pk).update(outcome="fail")
    mark_stale([trial.cell_id])
    recompute_all_stale()
    for _ in range(2):
        stored, expected = read_both()
        assert stored == expected
        assert stored[0]["sum_failed"] == 1
        refresh_pools()
    assert not RunChange.objects.exists()


def test_refresh_pools_removes_deleted_and_reopened_runs() -> None:
    first, second = (end_run("vendor/a", {"pass": count}) for count in (3, 5))
    refresh_pools()
    Run.objects.filter(pk=first.pk).update(deleted_at=timezone.now())
    Run.objects.filter(pk=second.pk).update(state=Run.State.RUNNING)
    for _ in range(2):
        stored, expected = read_both()
        assert stored == expected
        assert [line["sum_passed"] for line in stored] == [5]
        refresh_pools()
    assert not CellPool.objects.exists()
    assert not Run.objects.filter(pooled=True).exists()


def test_refresh_pools_skips_run_with_stale_cells() -> None:
    run = end_run("vendor/a", {"pass": 3})
    make_trial(run.cells.get(), "pass")
    mark_stale([run.cells.get().pk])
    assert refresh_pools() == 0
    recompute_all_stale()
    assert refresh_pools() == 1


def test_refresh_pools_stores_repeats_of_drawn_instances_only() -> None:
    end_run("vendor/a", {"pass": 3, "fail": 1})
    end_run("vendor/b", {"pass": 3}, kind="parity")
    refresh_pools()
    found = dict(CellPool.objects.values_list("model_name", "repeated"))
    assert found == {"vendor/a": [[1, 3, 4, 9, 12, 16], [1, 3, 4, 9, 12, 16]], "vendor/b": None}


def test_refresh_pools_processes_runs_in_batches() -> None:
    for name in ("vendor/a", "vendor/b", "vendor/a"):
        end_run(name, {"pass": 1})
    assert [refresh_pools(max_runs=2) for _ in range(3)] == [2, 1, 0]
    stored, expected = read_both()
    assert stored == expected


@pytest.mark.parametrize("is_pooled", [False, True])
def test_sums_of_imported_runs_include_simulated_ones(is_pooled: bool) -> None:
    for name in ("real", "simulated"):
        end_run(name, {"pass": 1})
        Run.objects.filter(imported=False).update(imported=True, simulated=name == "simulated")
    end_run("own", {"pass": 1})
    if is_pooled:
        refresh_pools()
    rows = sum_all_runs(NO_FILTER, simulated=False, imported=True).rows
    assert {row["model_name"] for row in rows} == {"real", "simulated"}
    assert list_choices(simulated=False, imported=True)["model"] == ("real", "simulated")
    assert list_choices(simulated=False, imported=False)["model"] == ("own",)
