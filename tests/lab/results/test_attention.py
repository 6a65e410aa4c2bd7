"""Runs and cells that need attention on the home page."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from tests.page_html import read_html
from toolbench.lab.models import Cell, Probe, Run
from toolbench.lab.results.attention import list_attention, read_site_state
from toolbench.lab.results.run.index import get_runs

pytestmark = pytest.mark.django_db


def test_list_attention_names_paused_run_failures_and_errors() -> None:
    cell = make_cell(make_config(make_run(state=Run.State.PAUSED, stopped_reason="The limit is reached.")))
    make_trials(cell, **{"fail": 9, "pass": 1, "infra": 2, "queued": 3})
    found = list_attention(get_runs("own"), (), read_site_state())
    assert [(item.mark, item.page, item.page_id) for item in found] == [
        ("cancelled", "run", cell.run_id), ("fail", "run", cell.run_id), ("infra", "run", cell.run_id),
    ]  # fmt: skip
    assert found[0].text.endswith("is paused: The limit is reached.")


def test_list_attention_names_runs_of_several_models_without_success() -> None:
    mixed, run = make_run(), make_run()
    for config, counts in (
        (make_config(mixed, make_model("a")), {"pass": 1}),
        (make_config(mixed, make_model("b")), {"fail": 4}),
        (make_config(run, make_model("a")), {"fail": 4}),
        (make_config(run, make_model("b")), {"fail": 5, "infra": 1}),
    ):
        make_trials(make_cell(config), **counts)
    failed, infra = list_attention(get_runs("own"), (), read_site_state())
    assert (failed.text, infra.mark) == (f"Run {run.pk}: no trial with tools passed", "infra")
    assert "0 of 9 over all configurations" in failed.detail


def test_list_attention_of_run_without_problems_is_empty() -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 20})
    assert list_attention(get_runs("own"), (), read_site_state()) == ()


def test_list_attention_names_cell_errors_and_old_probes_in_one_query() -> None:
    make_cell(make_config(make_run()))
    Cell.objects.update(compute_error="out of range", stale=False)
    old = timezone.now() - timedelta(days=31)
    for name, finished_at in (("old", old), ("new", timezone.now())):
        model = make_model(name)
        Probe.objects.create(model=model, provider=model.provider, state=Probe.State.DONE, finished_at=finished_at)
    with CaptureQueriesContext(connection) as queries:
        found = list_attention((), (), read_site_state())
    assert [item.page for item in found] == ["health", "model"]
    assert found[1].text == "old: capabilities may be outdated"
    assert len(queries) == 1


def test_home_page_folds_demonstration_below_own_results(owner_client: Client) -> None:
    before = read_html(owner_client.get("/"))
    assert '<details class="start-fold" open>' in before
    make_trials(make_cell(make_config(make_run(title="Mine"))), **{"pass": 2})
    text = read_html(owner_client.get("/"))
    assert text.index("Mine") < text.index("Needs attention") < text.index("Connect a provider")
    assert text.index("Connect a provider") < text.index("Local demonstration") < text.index("Published snapshot")
    assert '<details class="start-fold" open>' not in text
