"""What the pages say of counts and times of a run: what was cancelled did not finish, and times agree."""

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


def plain(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def test_show_cancelled_run_says_finished_and_cancelled(owner_client: Client) -> None:
    run = make_run(state=Run.State.CANCELLED, finished_at=timezone.now())
    make_trials(make_cell(make_config(run)), **{"pass": 2, "fail": 1, "cancelled": 4})
    text = plain(read_html(owner_client.get(f"/runs/{run.pk}/")))
    assert "Finished 3 of 7 4 cancelled" in text
    assert "7 of 7" not in text


@pytest.mark.parametrize("address", ["/runs/", "/runs/{}/"])
def test_page_counts_no_cancelled_trial_as_finished(owner_client: Client, address: str) -> None:
    run = make_run(state=Run.State.CANCELLING)
    make_trials(make_cell(make_config(run)), **{"pass": 2, "cancelled": 3, "running": 1})
    text = plain(read_html(owner_client.get(address.format(run.pk))))
    assert re.search(r"3 cancelled", text)
    assert not re.search(r"\b5(/| of )6\b", text)


def test_show_pace_after_five_seconds_names_five_seconds(owner_client: Client) -> None:
    run = make_run(state=Run.State.RUNNING)
    cell = make_cell(make_config(run))
    for _ in range(3):
        make_trial(cell, started_at=timezone.now() - timedelta(seconds=5))
    make_trial(cell, "queued")
    recompute_stale_cells()
    text = plain(read_html(owner_client.get(f"/runs/{run.pk}/")))
    found = re.search(r"trials that ended in the last (\d+) s", text)
    assert found is not None
    assert int(found[1]) < 60
    assert "3 minutes" not in text


def test_show_retried_run_says_what_each_duration_measures(owner_client: Client) -> None:
    began = timezone.now() - timedelta(hours=1)
    run = make_run(state=Run.State.FINISHED, finished_at=began + timedelta(minutes=13))
    Run.objects.filter(pk=run.pk).update(created_at=began)
    cell = make_cell(make_config(run))
    make_trial(cell, started_at=began, finished_at=began + timedelta(minutes=3))
    later = began + timedelta(minutes=12)
    make_trial(cell, execution=2, errors_retried=1, started_at=later, finished_at=later + timedelta(minutes=1))
    recompute_stale_cells()
    text = plain(read_html(owner_client.get(f"/runs/{run.pk}/")))
    assert "Trials ran for 4 min time with a trial under way, of 1 retried later the last execution" in text
    assert "13 min from launch to end" in text


def test_show_live_part_renews_the_forecast_and_has_one_time_left(owner_client: Client) -> None:
    earlier = make_run()
    make_trials(make_cell(make_config(earlier)), **{"pass": 10})
    run = make_run(state=Run.State.RUNNING)
    cell = make_cell(make_config(run))
    make_trials(cell, queued=5)
    address = f"/runs/{run.pk}/"
    first = plain(read_html(owner_client.get(address, headers=HTMX)))
    assert "for 5 unfinished trials" in first
    run.trials.filter(pk__in=list(run.trials.values_list("pk", flat=True)[:3])).update(
        state="done", outcome="pass", started_at=timezone.now() - timedelta(seconds=9), finished_at=timezone.now(),
        execution=1,
    )  # fmt: skip
    cell.stale = True
    cell.save()
    recompute_stale_cells()
    for text in (owner_client.get(address), owner_client.get(address, headers=HTMX)):
        said = plain(read_html(text))
        assert "for 2 unfinished trials" in said
        assert "when this page was loaded" not in said
        still_to_come = said[said.index("What is still to come") :]
        assert "Time " not in still_to_come.partition("From your own history")[0]


@pytest.mark.parametrize("path", sorted(Path(ROOT, "templates").rglob("*.html")), ids=lambda path: path.name)
def test_template_writes_no_count_of_done_trials_with_cancelled_ones(path: Path) -> None:
    """`Tally.done` holds cancelled trials: a page writes `finished` and what was cancelled."""
    said = re.sub(r'[\w-]+="[^"]*"', "", path.read_text())  # attributes may say how far a bar is
    assert not re.search(r"\btally\.done\b", re.sub(r"\{%.*?%\}", "", said))
