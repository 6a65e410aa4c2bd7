"""Commands that the tests of the whole stack run in a process with the database of the stack."""

import json
import sys
from collections.abc import Callable
from typing import Any

from django.db.models import F

from tests.lab.scripted_runs import launch_run, read_counters
from toolbench.lab.metrics.cells import mark_stale, recompute_stale
from toolbench.lab.models import Cell, Model, Provider, Step, Trial


def launch_stack_run(base_url: str, trials: str) -> int:
    """Launch a run of one cell at a provider with this address, and return its id."""
    provider = Provider.objects.create(name=base_url, base_url=base_url, concurrency=8, max_attempts=3)
    model = Model.objects.create(provider=provider, name="scripted")
    return int(launch_run(model, trials=int(trials)).pk)


def summarise_run(run_id: str) -> dict[str, Any]:
    """Return the outcomes and counts of the run, and whether its cell equals its trials."""
    cell = Cell.objects.get(run_id=run_id)
    before = read_counters(cell)
    mark_stale([cell.pk])
    recompute_stale()
    steps = Step.objects.filter(trial__run_id=run_id)
    return {
        "outcomes": list(Trial.objects.filter(run_id=run_id).values_list("state", "outcome")),
        "passed": cell.passed,
        "cell_is_its_trials": before == read_counters(Cell.objects.get(pk=cell.pk)),
        "counted_steps": steps.filter(execution=F("trial__execution")).count(),
        "abandoned_steps": steps.filter(execution__lt=F("trial__execution")).count(),
        "lost": Trial.objects.filter(run_id=run_id, execution__gt=1).count(),
    }


def main() -> None:
    verbs: dict[str, Callable[..., Any]] = {"launch": launch_stack_run, "summary": summarise_run}
    sys.stdout.write(json.dumps(verbs[sys.argv[1]](*sys.argv[2:])))
