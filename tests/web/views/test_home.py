"""First page and its polled part."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.factories import make_cell, make_config, make_run, make_trial, recompute_stale_cells
from tests.page_html import read_html
from toolbench.lab import builtin_data
from toolbench.lab.models import Cell, Model, Run, Trial

pytestmark = pytest.mark.django_db


def make_live_run() -> None:
    builtin_data.load_builtin_data()
    run = make_run(purpose="first_page", state="running")
    cell = make_cell(make_config(run, Model.objects.get(provider__service="local-own")), "weather")
    make_trial(cell, "fail", tools_dropped=True, sentence="The answer holds no call.")
    make_trial(cell, "queued")
    recompute_stale_cells()


def test_home_of_new_installation_explains_every_region(owner_client: Client) -> None:
    text = read_html(owner_client.get("/"))
    assert "No trial has failed here yet" in text
    assert "Plan a first run" in text
    assert "The published figures are not loaded" in text
    assert "No worker is running" in text


def test_home_polls_local_run_only_while_it_is_running(owner_client: Client) -> None:
    make_live_run()
    part = read_html(owner_client.get("/", headers={"HX-Request": "true"}))
    assert part.strip().startswith('<section class="card" id="local"')
    assert 'hx-trigger="every 2s"' in part
    assert "<html" not in part
    Trial.objects.filter(state="queued").update(state="done", outcome="pass")
    Cell.objects.update(stale=True)
    recompute_stale_cells()
    Run.objects.update(finished_at=timezone.now() - timedelta(minutes=5))
    assert "hx-trigger" not in read_html(owner_client.get("/", headers={"HX-Request": "true"}))


@pytest.mark.parametrize(("local_model", "fold"), [(False, ""), (True, "open")])
def test_home_closes_demonstration_while_local_model_is_off(
    owner_client: Client, settings: Settings, local_model: bool, fold: str
) -> None:
    settings.LOCAL_MODEL = local_model
    builtin_data.load_builtin_data()
    assert _find_demonstration_fold(owner_client) == fold


def _find_demonstration_fold(client: Client) -> str:
    """Return the attribute of the fold that has the local demonstration."""
    head = read_html(client.get("/")).partition('id="demonstration"')[0]
    return head.rpartition('<details class="start-fold"')[2].partition(">")[0].strip()


def test_home_demo_table_does_not_rank_configurations(owner_client: Client) -> None:
    make_live_run()
    text = read_html(owner_client.get("/"))
    assert "a correct call also names the requested city" in text
    assert "does not rank the configurations" in text
    assert "See the prompt without tools" in text


def test_home_labels_published_figures_with_date_and_origin(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    text = read_html(owner_client.get("/"))
    assert "Published matrix, February 2026" in text
    assert "February 2026, not measured here" in text
    assert "1,002/1,160" in text
    assert "1,002/1,120" in text


@pytest.mark.parametrize("variable", ["GROQ_API_KEY", "ANTHROPIC_API_KEY"])
def test_home_offers_key_of_environment_by_name_only(
    owner_client: Client, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "sk-very-secret")
    text = read_html(owner_client.get("/"))
    assert variable in text
    assert "very-secret" not in text


def test_home_escapes_text_of_model(owner_client: Client) -> None:
    cell = make_cell(make_config(make_run()))
    make_trial(cell, "fail", sentence="<script>alert(1)</script>", failure_class="<b>")
    text = read_html(owner_client.get("/"))
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text
