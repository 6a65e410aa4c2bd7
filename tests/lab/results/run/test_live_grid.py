"""The grid of a run and its latest trials."""

from datetime import timedelta

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.factories import make_cell, make_config, make_model, make_run, make_trial, make_trials, recompute_stale_cells
from tests.page_html import read_html
from toolbench.lab.models import Run
from toolbench.lab.results.run import live_grid
from toolbench.lab.results.run.cells import read_run_cells
from toolbench.lab.results.run.live_grid import MAX_LATEST_TRIALS, get_run_grid
from toolbench.lab.results.run.metrics import get_run_metrics
from toolbench.lab.results.run.page import get_run_page

pytestmark = pytest.mark.django_db


def test_run_grid_counts_only_trials_of_its_run() -> None:
    cell, other = make_cell(make_config(make_run())), make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 3, "fail": 1, "queued": 6})
    make_trials(other, **{"pass": 9})
    (row,) = get_run_grid(read_run_cells(cell.run_id), QueryDict()).grid.rows
    assert [(found.tally.passed, found.tally.queued) for found in row.cells if found] == [(3, 6)]


def test_run_grid_shows_the_first_rows_and_counts_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_grid, "MAX_GRID_ROWS", 1)
    run = make_run()
    for name in ("alpha", "beta"):
        make_trials(make_cell(make_config(run, make_model(name))), **{"pass": 1})
    grid = get_run_grid(read_run_cells(run.pk), QueryDict()).grid
    assert [row.label for row in grid.shown_rows] == ["alpha"]
    assert (len(grid.rows), grid.pages) == (2, 2)


def test_run_page_lists_configurations_in_the_order_of_the_grid() -> None:
    run = make_run()
    settings = [
        ("b", "default", "raw"), ("b", "default", "production"), ("a", "cold", "raw"), ("a", "warm", "production"),
        ("a", "cold", "production"), ("a", "default", "raw"), ("a", "default", "baseline"),
    ]  # fmt: skip
    for name, profile, strategy in settings:
        config = make_config(run, make_model(name), profile=profile, strategy=strategy)
        make_trials(make_cell(config), **{"pass": 1})
    matrix = get_run_grid(read_run_cells(run.pk), QueryDict()).matrix
    configs = [row.config for row in get_run_page(run.pk).config_rows]
    assert [(config.model_name, config.profile, config.strategy) for config in configs] == [
        (row.model, row.profile, row.settings["strategy"]) for row in matrix.rows
    ]
    assert [column.config for column in get_run_metrics(run.pk).columns] == configs


def test_run_grid_has_its_own_columns_which_its_links_do_not_choose() -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 1})
    found = get_run_grid(read_run_cells(cell.run_id), QueryDict())
    assert [column.name for column in found.grid.row_columns] == ["p50", "p95", "cost"]
    assert "grid_column" not in found.matrix.query.query()
    chosen = get_run_grid(read_run_cells(cell.run_id), QueryDict("grid_column=tokens"))
    assert [column.name for column in chosen.grid.row_columns] == ["tokens"]


def test_run_grid_latest_trials_are_the_newest_that_ended() -> None:
    cell = make_cell(make_config(make_run(state=Run.State.RUNNING)))
    now = timezone.now()
    ended = [make_trial(cell, finished_at=now + timedelta(seconds=number)) for number in range(MAX_LATEST_TRIALS + 2)]
    make_trial(cell, "running")
    recompute_stale_cells()
    with CaptureQueriesContext(connection) as queries:
        found = get_run_grid(read_run_cells(cell.run_id), QueryDict())
    assert list(found.latest) == ended[:1:-1]
    assert len(queries) <= 6


@pytest.mark.parametrize(
    "query", ["sort=-p95", "group=nonsense", "view=bars", "cell=x", "sort=%00", "metric=x", "run=9"]
)
def test_run_page_answers_any_state_of_its_grid_with_200(owner_client: Client, query: str) -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 1})
    assert owner_client.get(f"/runs/{cell.run_id}/?{query}").status_code == 200


def test_run_page_fragment_has_the_grid_and_the_ended_share(owner_client: Client) -> None:
    cell = make_cell(make_config(make_run(state=Run.State.RUNNING)))
    make_trials(cell, **{"pass": 5, "queued": 5})
    fragment = read_html(owner_client.get(f"/runs/{cell.run_id}/", headers={"HX-Request": "true"}))
    assert 'id="cell-1-1"' in fragment
    assert "--ended:50" in fragment
    assert "Latest trials" in fragment
    assert 'href="/matrix/?scope=runs&amp;cell=' in fragment
