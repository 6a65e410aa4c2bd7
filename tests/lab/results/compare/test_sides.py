"""Figures of a side of a comparison: the counters of its cells give the same as its trials."""

from collections.abc import Iterable
from typing import Any

import pytest
from django.http import QueryDict

from tests.factories import make_cell, make_config, make_run, make_step, make_trials
from toolbench.lab.metrics.cells import mark_stale, recompute_all_stale
from toolbench.lab.models import Cell, Run
from toolbench.lab.results.compare import comparison, sides
from toolbench.lab.results.compare.comparison import get_comparison
from toolbench.lab.results.compare.query import CompareQuery

pytestmark = pytest.mark.django_db


def make_crossed_run(*profiles: str) -> Run:
    """Return a run that tries two scenarios, each with another profile; some trials were retried and have a cost."""
    run = make_run()
    for profile, scenario in zip(profiles, ("happy_path", "date_time_strict"), strict=True):
        cell = make_cell(make_config(run, profile=profile), scenario)
        for trial in make_trials(cell, **{"pass": 3, "fail": 2}):
            trial.requests, trial.retries, trial.input_tokens, trial.cost = 2, trial.pk % 2, 10 + trial.pk % 7, 0.25
            trial.save()
            make_step(trial, status=429 if trial.retries else 200, attempt=1 + trial.retries, backoff_ms=5.0)
    mark_stale(Cell.objects.filter(run=run).values_list("pk", flat=True))
    recompute_all_stale()
    return run


def test_side_without_shared_strata_has_equal_figures_from_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = make_crossed_run("calm", "bold"), make_crossed_run("bold", "calm")
    query = CompareQuery.from_query(QueryDict(f"a_run={first.pk}&b_run={second.pk}"))
    read_from: list[Iterable[Any] | None] = []

    def read_cells(*args: Any) -> Any:
        read_from.append(tally_whole_cells(*args))
        return read_from[-1]

    tally_whole_cells = sides._tally_whole_cells
    monkeypatch.setattr(sides, "_tally_whole_cells", read_cells)
    found = get_comparison(query)
    assert not found.counts.keys
    assert all(read_from)
    monkeypatch.setattr(comparison, "read_side", lambda trials, _: sides.read_side(trials))
    assert get_comparison(query).sides == found.sides
    assert found.sides[0].retries.answers_429
