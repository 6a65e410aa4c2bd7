"""Migration 0014 corrects rows from before figures were bounded, and changes nothing else."""

from importlib import import_module
from math import nan
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from tests.factories import make_cell, make_config, make_model, make_run, make_step, make_trial, recompute_stale_cells
from tests.web.run_urls import list_failed_urls
from toolbench.lab import builtin_data
from toolbench.lab.models import Cell, Probe, ProbeExchange, Run, Step, Trial

MIGRATION = import_module("toolbench.lab.migrations.0014_implausible_figures").Migration
POISON: dict[str, Any] = {
    "input_tokens": 2**62,
    "output_tokens": 10**9 + 1,
    "cost": 1.7e308,
    "duration_ms": 1e300,
    "model_ms": nan,
}
pytestmark = pytest.mark.django_db


def migrate() -> None:
    with connection.cursor() as cursor:
        for statement in MIGRATION.operations[0].sql:
            cursor.execute(statement)


def make_poisoned_run(**fields: Any) -> Run:
    """Make a run of two trials in one cell whose tokens overflow when they are summed."""
    run = make_run(tokens_used=2**62, **fields)
    cell = make_cell(make_config(run))
    for _ in range(2):
        trial = make_trial(cell, **POISON)
        make_step(trial, input_tokens=2**31 - 1, output_tokens=7, cost=-1.0, first_byte_ms=1e300)
        make_step(trial, input_tokens=5, output_tokens=None, cost=0.5)
    return run


def read_figures(run: Run) -> list[dict[str, Any]]:
    rows = [*Trial.objects.filter(run=run), *Step.objects.filter(trial__run=run), *run.cells.all()]
    names = ("input_tokens", "output_tokens", "cost", "duration_ms", "model_ms", "stale")
    return [{name: getattr(row, name) for name in names if hasattr(row, name)} for row in rows]


def test_migration_0014_sets_implausible_figures_to_unknown() -> None:
    run = make_poisoned_run()
    Cell.objects.update(stale=False)
    migrate()
    trial = run.trials.first()
    assert trial is not None
    assert (trial.input_tokens, trial.output_tokens, trial.cost) == (0, 0, None)
    assert (trial.duration_ms, trial.model_ms, trial.turns) == (None, 0, 2)
    first, second = trial.steps.order_by("ordinal")
    assert (first.input_tokens, first.output_tokens, first.cost, first.first_byte_ms) == (None, 7, None, None)
    assert (second.input_tokens, second.cost) == (5, 0.5)
    assert run.cells.get().stale
    run.refresh_from_db()
    assert run.tokens_used == 24


def test_migration_0014_lets_cells_be_recomputed() -> None:
    poisoned = make_poisoned_run()
    other = make_run()
    make_trial(make_cell(make_config(other)))
    recompute_stale_cells()
    assert "out of range" in poisoned.cells.get().compute_error
    migrate()
    recompute_stale_cells()
    assert not Cell.objects.filter(stale=True).exists()
    assert (poisoned.cells.get().passed, poisoned.cells.get().compute_error) == (2, "")
    assert other.cells.get().input_tokens == 400


def test_migration_0014_lets_every_page_show_corrected_run(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    poisoned = make_poisoned_run(imported=True)
    other = make_run()
    make_trial(make_cell(make_config(other)))
    make_step(other.trials.get())
    migrate()
    recompute_stale_cells()
    assert list_failed_urls(owner_client, poisoned, other) == []
    assert list_failed_urls(owner_client, other, poisoned) == []


def test_migration_0014_leaves_plausible_rows_unchanged() -> None:
    run = make_run(tokens_used=123)
    trial = make_trial(make_cell(make_config(run)), input_tokens=10**9, cost=10.0**6, first_byte_ms=0.0)
    make_step(trial, input_tokens=10**9, cost=0.0, duration_ms=7 * 24 * 3600 * 1000)
    recompute_stale_cells()
    before = read_figures(run)
    migrate()
    run.refresh_from_db()
    assert (read_figures(run), run.tokens_used) == (before, 123)


def test_migration_0014_corrects_probe_exchanges() -> None:
    model = make_model()
    probe = Probe.objects.create(model=model, provider=model.provider, kind="first_use", state="done")
    fields = {"execution": 1, "check_slug": "tools", "duration_ms": 1.0}
    ProbeExchange.objects.create(probe=probe, ordinal=0, input_tokens=2**31 - 1, output_tokens=4, cost=1e300, **fields)
    migrate()
    found = probe.exchanges.get()
    assert (found.input_tokens, found.output_tokens, found.cost) == (None, 4, None)
