"""Large database that repeats the trials of a template run."""

import sys

import pytest

from benchmarks.million import multiply
from benchmarks.million.addresses import list_addresses
from benchmarks.million.page_times import measure_address
from tests.factories import make_cell, make_config, make_model, make_run, make_step, make_trials
from toolbench.lab.metrics.pools import refresh_pools
from toolbench.lab.models import Cell, Run, Step, StepBody, Trial, TrialText

TRIALS = 2_000
SCENARIOS = ("happy_path", "type_error_recovery", "chat_only")


@pytest.fixture
def template_run(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Make a small template run and multiply it into runs of eight models."""
    run = make_run(simulated=True, state=Run.State.FINISHED)
    for name in ("persona-a", "persona-b"):
        for scenario in SCENARIOS:
            new_trials = make_trials(make_cell(make_config(run, make_model(name)), scenario), **{"pass": 3, "fail": 2})
            for trial in new_trials:
                make_step(trial, bodies={"request": b'{"messages": [{"role": "user", "content": "Save the draft."}]}'})
    for name, value in {"LARGE_RUNS": 1, "LARGE_CONFIGS": 8, "MODELS": 8, "BODIES_OF_EVERY": 10}.items():
        monkeypatch.setattr(multiply, name, value)
    monkeypatch.setattr(multiply, "LARGE_SCENARIOS", len(SCENARIOS))
    monkeypatch.setattr(sys, "argv", ["multiply", str(run.pk), str(TRIALS), "1"])
    multiply.main()
    return run


def test_multiply_copies_trials_with_steps_texts_and_counts(template_run: Run) -> None:
    copied = Trial.objects.exclude(run=template_run)
    assert TRIALS <= copied.count() < 2 * TRIALS
    assert Step.objects.filter(trial__in=copied).count() == TrialText.objects.filter(trial__in=copied).count()
    assert StepBody.objects.filter(step__trial__in=copied).exists()
    cells = Cell.objects.exclude(run=template_run)
    assert sum(cell.passed + cell.failed for cell in cells) == copied.count()
    assert {run.trial_count for run in Run.objects.exclude(pk=template_run.pk)} == {
        run.trials.count() for run in Run.objects.exclude(pk=template_run.pk)
    }


def test_measure_address_returns_status_queries_and_cpu(template_run: Run) -> None:
    refresh_pools()
    addresses = list_addresses()
    assert {address.split("/")[1].partition("?")[0] for address in addresses} >= {"", "runs", "trials", "matrix"}
    for address in addresses[::12]:
        cost = measure_address(address, repeats=1)
        assert (cost.status, cost.queries > 0, cost.cpu_ms > 0) == (200, True, True), address
