"""Retention page: preview, saving, and the pages of runs and trials after removal."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from playwright.sync_api import Page

from tests.factories import make_cell, make_config, make_run, make_step, make_trial, recompute_stale_cells
from tests.page_html import read_html
from toolbench.lab.accounts.roles import Role, set_role
from toolbench.lab.models import AuditEntry, RetentionRule, Run, Trial
from toolbench.lab.operations.body_removal import remove_due_bodies
from toolbench.lab.operations.retention_policy import Kind, load_retention_policy

pytestmark = pytest.mark.django_db


def make_old_trial() -> Trial:
    at = timezone.now() - timedelta(days=40)
    trial = make_trial(make_cell(make_config(make_run())), finished_at=at, verdict={"judging": 1, "rule": "r"})
    make_step(trial, bodies={"request": b"secret words"})
    recompute_stale_cells()
    return trial


def test_retention_page_preview_counts_trials_of_entered_rules(owner_client: Client) -> None:
    make_old_trial()
    page = read_html(owner_client.get("/settings/retention/?passed=30"))
    assert "These rules would now remove the bodies of 1 trial, about" in page
    assert RetentionRule.objects.count() == 0


def test_retention_page_saves_rules_with_audit_entry(owner_client: Client) -> None:
    response = owner_client.post("/settings/retention/", {"passed": "30", "failed": ""}, follow=True)
    page = read_html(response)
    assert "Within a minute, the scheduler removes what is due." in page
    assert 'value="30"' in page
    assert RetentionRule.objects.get().days == 30
    assert AuditEntry.objects.get().subject == "rules of retention"


def test_retention_page_confirms_rules_that_remove_bodies(owner_client: Client) -> None:
    make_old_trial()
    sent = {"passed": "1", "confirmed": "0"}
    page = read_html(owner_client.post("/settings/retention/", sent))
    assert "These rules remove the bodies of 1 trial, about" in page
    assert 'name="confirmed" value="1"' in page
    assert '<input type="hidden" name="passed" value="1">' in page
    assert not RetentionRule.objects.exists()
    owner_client.post("/settings/retention/", {**sent, "confirmed": "1"})
    assert RetentionRule.objects.get().days == 1


def test_retention_page_without_preview_counts_nothing(owner_client: Client) -> None:
    make_old_trial()
    RetentionRule.objects.create(kind="passed", days=30)
    with CaptureQueriesContext(connection) as queries:
        page = read_html(owner_client.get("/settings/retention/"))
    assert 'value="30"' in page
    assert "Due now" not in page
    assert not [query["sql"] for query in queries if "lab_trial" in query["sql"]]


@pytest.mark.parametrize("send", ["get", "post"])
def test_retention_page_explains_invalid_days(owner_client: Client, send: str) -> None:
    response = getattr(owner_client, send)("/settings/retention/", {"failed": "soon"})
    assert response.status_code == 422
    assert "Enter whole days from 1 to 36500" in read_html(response)
    assert RetentionRule.objects.count() == 0


def test_retention_page_previews_other_rules_of_invalid_one(owner_client: Client) -> None:
    make_old_trial()
    response = owner_client.get("/settings/retention/?passed=30&failed=soon")
    assert "The valid rules would now remove the bodies of 1 trial, about" in read_html(response)
    due = {row.kind: row.due.trials if row.due else None for row in response.context["page"].rows}
    assert response.status_code == 422
    assert (due[Kind.PASSED], due[Kind.FAILED]) == (1, None)


def test_retention_page_lets_operator_preview_but_not_save(client: Client) -> None:
    user = User(username="op")
    set_role(user, Role.OPERATOR)
    user.save()
    client.force_login(user)
    page = read_html(client.get("/settings/retention/?passed=30"))
    assert "Only an owner can save rules." in page
    assert "Save rules" not in page
    assert client.post("/settings/retention/", {"passed": "1"}).status_code == 403


def test_trial_and_run_pages_report_removed_bodies(owner_client: Client) -> None:
    trial = make_old_trial()
    RetentionRule.objects.create(kind="passed", days=30)
    remove_due_bodies(load_retention_policy())
    page = read_html(owner_client.get(f"/trials/{trial.pk}/"))
    assert "by the rule “Passed trials after 30 days”" in page
    assert "secret words" not in page
    run_page = read_html(owner_client.get(f"/runs/{trial.run_id}/"))
    assert "1 trial cannot be re-judged" in run_page
    assert f"/runs/{trial.run_id}/rejudge/" not in run_page


def test_run_page_button_keeps_and_releases_bodies(owner_client: Client) -> None:
    run = make_old_trial().run
    owner_client.post(f"/runs/{run.pk}/act/", {"action": "keep-bodies"})
    assert Run.objects.get().keeps_bodies
    assert "does not remove the bodies of this run" in read_html(owner_client.get(f"/runs/{run.pk}/"))
    owner_client.post(f"/runs/{run.pk}/act/", {"action": "release-bodies"})
    assert not Run.objects.get().keeps_bodies


@pytest.mark.django_db(transaction=True)
def test_retention_page_on_phone_shows_whole_inputs(browser_page: Page) -> None:
    make_old_trial()
    browser_page.set_viewport_size({"width": 390, "height": 844})
    for address in ("/settings/retention/", "/settings/retention/?passed=30"):
        browser_page.goto(address)
        boxes = [field.bounding_box() for field in browser_page.locator("td input").all()]
        assert len(boxes) == len(Kind)
        assert all(box and box["width"] >= 60 and box["x"] + box["width"] <= 390 for box in boxes)
