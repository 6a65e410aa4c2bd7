"""List of runs and its form: labels, deletion after confirmation, pages."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect

from tests.factories import make_cell, make_config, make_run, make_trials
from tests.page_html import read_html
from toolbench.lab.models import AuditEntry, Run
from toolbench.lab.results.run.index import PAGE_SIZE

pytestmark = pytest.mark.django_db


@pytest.mark.django_db(transaction=True)
def test_run_list_shows_one_link_to_new_run_at_each_width(browser_page: Page) -> None:
    make_run()
    for width in (1440, 390):
        browser_page.set_viewport_size({"width": width, "height": 844})
        browser_page.goto("/runs/")
        expect(browser_page.get_by_role("link", name="New run").filter(visible=True)).to_have_count(1)


def test_run_list_says_why_a_run_has_no_rate(owner_client: Client) -> None:
    make_trials(make_cell(make_config(make_run()), scenario_group="tools"), **{"pass": 2})
    run = make_run()
    for _ in range(2):
        make_trials(make_cell(make_config(run)), **{"pass": 2})
    config = make_config(make_run())
    for group in ("tools", "agents"):
        make_trials(make_cell(config, f"{group}_task", scenario_group=group), **{"pass": 2})
    text = read_html(owner_client.get("/runs/"))
    assert text.count("2 configurations") == 1
    assert text.count("several scenario groups") == 1


def test_run_list_labels_selected_runs_and_filters_by_label(owner_client: Client) -> None:
    first, second = make_run(title="First"), make_run(title="Second")
    fields = {"action": "label", "run": [first.pk], "label": "night & day", "back": "/runs/?page=1"}
    response = owner_client.post("/runs/act/", fields)
    assert response["Location"] == "/runs/?page=1"
    page = read_html(owner_client.get("/runs/", {"label": "night & day"}))
    assert "First" in page
    assert "Second" not in page
    assert f"run {first.pk}" in set(AuditEntry.objects.values_list("subject", flat=True))
    assert "No run has the label" in read_html(owner_client.get("/runs/?label=other"))
    assert Run.objects.get(pk=second.pk).label == ""


def test_run_list_refused_action_keeps_label_and_selection(owner_client: Client) -> None:
    run, other = make_run(), make_run()
    fields = {"action": "label", "run": [run.pk, 424242], "label": "night", "back": "/runs/"}
    page = read_html(owner_client.post("/runs/act/", fields, follow=True))
    assert "There is no run 424242" in page
    assert 'maxlength="80" value="night"' in page
    assert f'aria-label="Select run {run.pk}" checked' in re.sub(r"\s+", " ", page)
    assert f'aria-label="Select run {other.pk}" checked' not in re.sub(r"\s+", " ", page)


def test_run_list_deletes_runs_after_confirmation(owner_client: Client) -> None:
    run = make_run(title="Old one", trial_count=40)
    page = read_html(owner_client.post("/runs/act/", {"action": "delete", "run": run.pk}))
    assert "Delete 1 run?" in page
    assert "Old one" in page
    assert "40 trials" in page
    assert Run.objects.get().deleted_at is None
    fields = {"action": "delete", "run": run.pk, "confirmed": "1"}
    assert "1 run deleted." in read_html(owner_client.post("/runs/act/", fields, follow=True))
    assert Run.objects.get().deleted_at is not None


def test_run_list_refuses_to_delete_running_run(owner_client: Client) -> None:
    run = make_run(state=Run.State.RUNNING)
    for confirmed in ({}, {"confirmed": "1"}):
        fields = {"action": "delete", "run": run.pk, **confirmed}
        page = read_html(owner_client.post("/runs/act/", fields, follow=True))
        assert f"Run {run.pk} is running: cancel it first." in page
    assert Run.objects.get().deleted_at is None


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"action": "label"},
        {"action": "label", "run": "x\0"},
        {"action": "explode", "run": "1"},
        {"action": "delete", "run": "9" * 30, "confirmed": "1"},
        {"action": "label", "run": "1", "back": "https://elsewhere.test/"},
    ],
)
def test_run_list_with_bad_input_changes_nothing(owner_client: Client, fields: dict[str, str]) -> None:
    make_run()
    response = owner_client.post("/runs/act/", fields)
    assert response["Location"] == "/runs/"
    assert not Run.objects.exclude(label="").exists()


def test_run_list_refuses_label_of_viewer(client: Client) -> None:
    client.force_login(User.objects.create(username="viewer"))
    assert client.post("/runs/act/", {"action": "label", "run": make_run().pk}).status_code == 403


@pytest.mark.parametrize("page", ["0", "-1", "x", "9" * 30, "99"])
def test_run_list_answers_page_out_of_range(owner_client: Client, page: str) -> None:
    make_run()
    assert owner_client.get("/runs/", {"page": page}).status_code == 200


def test_run_list_pages_keep_label(owner_client: Client) -> None:
    runs = [make_run(title=f"Number {number}", label="x") for number in range(PAGE_SIZE + 1)]
    first = read_html(owner_client.get("/runs/?label=x"))
    assert f">{runs[0].pk} · Number 0<" not in first
    assert "label=x&amp;page=2" in first
    assert f">{runs[0].pk} · Number 0<" in read_html(owner_client.get("/runs/?label=x&page=2"))


def test_run_list_row_shows_errors_tokens_and_cost(owner_client: Client) -> None:
    run = make_run()
    make_trials(make_cell(make_config(run)), **{"pass": 3, "infra": 2})
    page = read_html(owner_client.get("/runs/"))
    assert f"/trials/?run={run.pk}&amp;outcome=infra" in page
    assert "2,300" in page  # five trials of 460 tokens
    assert "unknown" in page  # no price is known
