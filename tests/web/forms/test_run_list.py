"""The list of runs by its form: labels, deletion after a confirmation, pages."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.factories import make_cell, make_config, make_run, make_trials
from tests.page_html import read_html
from toolbench.lab.models import AuditEntry, Run
from toolbench.lab.results.run.index import PAGE_SIZE

pytestmark = pytest.mark.django_db


def test_selected_runs_get_a_label_and_are_found_by_it(owner_client: Client) -> None:
    first, second = make_run(title="First"), make_run(title="Second")
    wish = {"action": "label", "run": [first.pk], "label": "night & day", "back": "/runs/?page=1"}
    response = owner_client.post("/runs/act/", wish)
    assert response["Location"] == "/runs/?page=1"
    page = read_html(owner_client.get("/runs/", {"label": "night & day"}))
    assert "First" in page
    assert "Second" not in page
    assert f"run {first.pk}" in set(AuditEntry.objects.values_list("subject", flat=True))
    assert "No run has the label" in read_html(owner_client.get("/runs/?label=other"))
    assert Run.objects.get(pk=second.pk).label == ""


def test_a_deletion_shows_what_goes_and_needs_a_second_button(owner_client: Client) -> None:
    run = make_run(title="Old one", trial_count=40)
    page = read_html(owner_client.post("/runs/act/", {"action": "delete", "run": run.pk}))
    assert "Delete 1 run?" in page
    assert "Old one" in page
    assert "40 trials" in page
    assert Run.objects.get().deleted_at is None
    wish = {"action": "delete", "run": run.pk, "confirmed": "1"}
    assert "1 run deleted." in read_html(owner_client.post("/runs/act/", wish, follow=True))
    assert Run.objects.get().deleted_at is not None


def test_running_runs_are_refused_with_a_sentence(owner_client: Client) -> None:
    run = make_run(state=Run.State.RUNNING)
    for confirmed in ({}, {"confirmed": "1"}):
        wish = {"action": "delete", "run": run.pk, **confirmed}
        page = read_html(owner_client.post("/runs/act/", wish, follow=True))
        assert f"Run {run.pk} is running: cancel it first." in page
    assert Run.objects.get().deleted_at is None


@pytest.mark.parametrize(
    "wish",
    [
        {},
        {"action": "label"},
        {"action": "label", "run": "x\0"},
        {"action": "explode", "run": "1"},
        {"action": "delete", "run": "9" * 30, "confirmed": "1"},
        {"action": "label", "run": "1", "back": "https://elsewhere.test/"},
    ],
)
def test_bad_input_changes_nothing_and_stays_here(owner_client: Client, wish: dict[str, str]) -> None:
    make_run()
    response = owner_client.post("/runs/act/", wish)
    assert response["Location"] == "/runs/"
    assert not Run.objects.exclude(label="").exists()


def test_a_viewer_may_not_label_runs(client: Client) -> None:
    client.force_login(User.objects.create(username="viewer"))
    assert client.post("/runs/act/", {"action": "label", "run": make_run().pk}).status_code == 403


@pytest.mark.parametrize("page", ["0", "-1", "x", "9" * 30, "99"])
def test_pages_out_of_range_answer(owner_client: Client, page: str) -> None:
    make_run()
    assert owner_client.get("/runs/", {"page": page}).status_code == 200


def test_the_list_is_paged_and_keeps_its_label(owner_client: Client) -> None:
    runs = [make_run(title=f"Number {number}", label="x") for number in range(PAGE_SIZE + 1)]
    first = read_html(owner_client.get("/runs/?label=x"))
    assert f">{runs[0].pk} · Number 0<" not in first
    assert "label=x&amp;page=2" in first
    assert f">{runs[0].pk} · Number 0<" in read_html(owner_client.get("/runs/?label=x&page=2"))


def test_a_row_names_errors_tokens_and_cost(owner_client: Client) -> None:
    run = make_run()
    make_trials(make_cell(make_config(run)), **{"pass": 3, "infra": 2})
    page = read_html(owner_client.get("/runs/"))
    assert f"/trials/?run={run.pk}&amp;outcome=infra" in page
    assert "2,300" in page  # five trials of 460 tokens
    assert "unknown" in page  # nobody named what they cost
