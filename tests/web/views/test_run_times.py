"""Counts and times of a run on its pages."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import make_cell, make_config, make_run, make_trial, make_trials, recompute_stale_cells
from tests.page_html import read_html
from toolbench.installation import ROOT
from toolbench.lab.models import Run

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def remove_tags(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def test_run_page_of_cancelled_run_counts_finished_and_cancelled(owner_client: Client) -> None:
    run = make_run(state=Run.State.CANCELLED, finished_at=timezone.now())
    make_trials(make_cell(make_config(run)), **{"pass": 2, "fail": 1, "cancelled": 4})
    text = remove_tags(read_html(owner_client.get(f"/runs/{run.pk}/")))
    assert "Finished 3 of 7 4 cancelled" in text
    assert "7 of 7" not in text


@pytest.mark.parametrize("address", ["/runs/", "/runs/{}/"])
def test_run_pages_count_no_cancelled_trial_as_finished(owner_client: Client, address: str) -> None:
    run = make_run(state=Run.State.CANCELLING)
    make_trials(make_cell(make_config(run)), **{"pass": 2, "cancelled": 3, "running": 1})
    text = remove_tags(read_html(owner_client.get(address.format(run.pk))))
    assert re.search(r"3 cancelled", text)
    assert not re.search(r"\b5(/| of )6\b", text)


def test_run_page_names_period_of_pace(owner_client: Client) -> None:
    run = make_run(state=Run.State.RUNNING)
    cell = make_cell(make_config(run))
    for _ in range(3):
        make_trial(cell, started_at=timezone.now() - timedelta(seconds=5))
    make_trial(cell, "queued")
    recompute_stale_cells()
    text = remove_tags(read_html(owner_client.get(f"/runs/{run.pk}/")))
    found = re.search(r"trials that ended in the last (\d+) s", text)
    assert found is not None
    assert int(found[1]) < 60
    assert "3 minutes" not in text


def test_run_page_of_retried_run_explains_each_duration(owner_client: Client) -> None:
    began_at = timezone.now() - timedelta(hours=1)
    run = make_run(state=Run.State.FINISHED, finished_at=began_at + timedelta(minutes=13))
    Run.objects.filter(pk=run.pk).update(created_at=began_at)
    cell = make_cell(make_config(run))
    make_trial(cell, started_at=began_at, finished_at=began_at + timedelta(minutes=3))
    retried_at = began_at + timedelta(minutes=12)
    make_trial(
        cell, execution=2, errors_retried=1, started_at=retried_at, finished_at=retried_at + timedelta(minutes=1)
    )
    recompute_stale_cells()
    text = remove_tags(read_html(owner_client.get(f"/runs/{run.pk}/")))
    assert "Trials ran for 4 min 13 min from launch to end; 1 retried trial counts with the last execution only" in text
    assert "“Trials ran for” is the time in which a trial was running" in text


def test_run_page_live_part_updates_estimate(owner_client: Client) -> None:
    earlier = make_run()
    make_trials(make_cell(make_config(earlier)), **{"pass": 10})
    run = make_run(state=Run.State.RUNNING)
    cell = make_cell(make_config(run))
    make_trials(cell, queued=5)
    address = f"/runs/{run.pk}/"
    first = remove_tags(read_html(owner_client.get(address, headers=HTMX)))
    assert "for 5 unfinished trials" in first
    run.trials.filter(pk__in=list(run.trials.values_list("pk", flat=True)[:3])).update(
        state="done", outcome="pass", started_at=timezone.now() - timedelta(seconds=9), finished_at=timezone.now(),
        execution=1,
    )  # fmt: skip
    cell.stale = True
    cell.save()
    recompute_stale_cells()
    for text in (owner_client.get(address), owner_client.get(address, headers=HTMX)):
        page_text = remove_tags(read_html(text))
        assert "for 2 unfinished trials" in page_text
        still_to_come = page_text[page_text.index("Estimate of unfinished trials") :]
        assert "Time " not in still_to_come.partition("From your earlier trials")[0]


@pytest.mark.parametrize("path", sorted(Path(ROOT, "templates").rglob("*.html")), ids=lambda path: path.name)
def test_templates_do_not_print_count_of_done_trials(path: Path) -> None:
    """`Tally.done` includes cancelled trials, so a page prints `finished` and `cancelled` instead."""
    page_text = re.sub(r'[\w-]+="[^"]*"', "", path.read_text())  # attributes may give the length of a bar
    assert not re.search(r"\btally\.done\b", re.sub(r"\{%.*?%\}", "", page_text))
