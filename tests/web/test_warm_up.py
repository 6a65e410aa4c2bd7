"""Results that the web server computes before it serves requests."""

import logging
from pathlib import Path

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.factories import make_cell, make_config, make_run, make_trials, recompute_stale_cells
from toolbench.lab.metrics.pools import refresh_pools
from toolbench.lab.models import Run
from toolbench.web import warm_up

pytestmark = pytest.mark.django_db(transaction=True)


def test_prepare_pages_compiles_templates_of_installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a wheel, the templates are inside the package."""
    (tmp_path / "templates" / "runs").mkdir(parents=True)
    (tmp_path / "templates" / "runs" / "list.html").touch()
    names: list[str] = []
    monkeypatch.setattr(warm_up, "ASSETS", tmp_path)
    monkeypatch.setattr(warm_up, "get_template", names.append)
    warm_up.prepare_pages()
    assert names == ["runs/list.html"]


@pytest.fixture
def ended_run() -> None:
    cell = make_cell(make_config(make_run(state=Run.State.FINISHED)))
    make_trials(cell, **{"pass": 3, "fail": 2})
    recompute_stale_cells()
    refresh_pools()


@pytest.mark.parametrize("page", warm_up.CACHED_PAGES)
def test_prepare_results_makes_first_request_as_cheap_as_second(
    ended_run: None, owner_client: Client, page: str
) -> None:
    warm_up.prepare_results()
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as captured:
            assert owner_client.get(f"/{page}/").status_code == 200
        counts.append(len(captured))
    assert counts[0] == counts[1]


def test_prepare_results_without_database_logs_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> None:
        raise OperationalError("the database is away")

    monkeypatch.setattr(connection, "cursor", refuse)
    with caplog.at_level(logging.WARNING):
        warm_up.prepare_results()
    assert "the database is away" in caplog.text
