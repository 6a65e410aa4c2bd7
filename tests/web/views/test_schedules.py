import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from tests.factories import make_model, make_run
from tests.lab.schedules.scheduled import add_run, make_alert_delivery, make_rule, make_schedule
from tests.lab.scripted_runs import launch_run
from tests.page_html import read_html
from toolbench.lab.accounts.roles import Role, set_role
from toolbench.lab.models import AlertDelivery, AlertRule, AuditEntry, Run, Schedule

pytestmark = pytest.mark.django_db
FORM = {
    "name": "Core",
    "rhythm": "nightly",
    "hour_utc": "2",
    "every_hours": "",
    "requests_per_run": "100",
    "requests_per_month": "3000",
}


@pytest.fixture
def run() -> Run:
    run = launch_run(make_model())
    Run.objects.update(state=Run.State.FINISHED, finished_at=timezone.now())
    run.refresh_from_db()
    return run


def test_run_page_links_to_schedule_form_with_its_plan(owner_client: Client, run: Run) -> None:
    page = read_html(owner_client.get(f"/runs/{run.pk}/"))
    assert f'href="/schedules/new/?run={run.pk}"' in page
    form = read_html(owner_client.get(f"/schedules/new/?run={run.pk}"))
    assert "1 configuration, 1 cell, 3 trials" in form
    assert 'name="requests_per_run" value="' in form


def test_schedule_form_saves_schedule_with_audit_entry(owner_client: Client, run: Run) -> None:
    response = owner_client.post(f"/schedules/new/?run={run.pk}", FORM)
    schedule = Schedule.objects.get()
    assert response.headers["Location"] == f"/schedules/{schedule.pk}/"
    page = read_html(owner_client.get(f"/schedules/{schedule.pk}/"))
    assert "Nightly at 02:00 UTC, next" in page
    assert "the schedule repeats the plan of this run" in page
    assert AuditEntry.objects.get().subject == "schedule Core"
    assert "Core" in read_html(owner_client.get("/schedules/"))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": ""}, "This field is required."),
        ({"hour_utc": ""}, "Enter either a number of hours or an hour (UTC), not both."),
        ({"rhythm": "hours", "every_hours": "999999"}, "less than or equal to 744"),
        ({"requests_per_month": "9"}, "Enter at least the requests of one run."),
        ({"requests_per_run": "2"}, "requests or more: with fewer, every run would pause"),
    ],
)
def test_schedule_form_explains_wrong_values_and_saves_nothing(
    changed: dict[str, str], words: str, owner_client: Client, run: Run
) -> None:
    response = owner_client.post(f"/schedules/new/?run={run.pk}", FORM | changed)
    assert response.status_code == 422
    assert words in read_html(response)
    assert not Schedule.objects.exists()


def test_schedule_form_of_run_without_plan_says_why(owner_client: Client) -> None:
    imported = make_run(imported=True)
    assert "The run was imported" in read_html(owner_client.get(f"/schedules/new/?run={imported.pk}"))
    for query in ("", "?run=x", "?run=999999"):
        assert owner_client.get(f"/schedules/new/{query}").status_code == 404


def test_schedule_page_changes_schedule(owner_client: Client) -> None:
    schedule = make_schedule(make_model())
    sent = FORM | {"rhythm": "hours", "every_hours": "6", "hour_utc": "", "name": "Six"}
    owner_client.post(f"/schedules/{schedule.pk}/", sent)
    schedule.refresh_from_db()
    assert (str(schedule), schedule.rhythm) == ("Six", "every 6 hours")
    assert owner_client.post(f"/schedules/{schedule.pk}/", sent | {"requests_per_month": "1"}).status_code == 422


def test_schedule_buttons_launch_pause_resume_pin_and_delete(owner_client: Client) -> None:
    schedule = make_schedule(make_model())

    def press(action: str, **values: Any) -> str:
        sent = {"action": action} | values
        return read_html(owner_client.post(f"/schedules/{schedule.pk}/act/", sent, follow=True))

    assert "is launched." in press("run")
    assert "has not ended: it is running. Nothing was changed." in press("run")
    assert "Paused, every 24 hours" in press("pause")
    assert "Every 24 hours, next" in press("resume")
    assert "A baseline consists of finished runs" in press("baseline", baseline=[schedule.runs.get().pk])
    schedule.runs.update(state=Run.State.FINISHED)
    refused = press("baseline", baseline=[schedule.runs.get().pk, 424242])
    assert f'aria-label="Run {schedule.runs.get().pk} is a baseline" checked' in re.sub(r"\s+", " ", refused)
    assert "Baseline: 1 run." in press("baseline", baseline=[schedule.runs.get().pk])
    assert "This button is not known" in press("explode")
    assert "is deleted. Its runs are kept." in press("delete")
    assert Run.objects.filter(schedule=None).count() == 1


def test_schedule_pages_show_skip_reason(owner_client: Client) -> None:
    schedule = make_schedule(make_model(), skip_reason="Run 3 has not ended: it is running.", skipped_at=timezone.now())
    for path in ("/schedules/", f"/schedules/{schedule.pk}/"):
        assert "Run 3 has not ended" in read_html(owner_client.get(path))


def test_alert_rule_is_added_tested_switched_and_deleted(owner_client: Client) -> None:
    schedule = make_schedule(make_model())
    sent = {"schedule": schedule.pk, "kind": "below_target", "threshold": "80", "email": "a@example.test"}
    page = read_html(owner_client.post("/schedules/rules/new/", sent, follow=True))
    assert "the whole interval of a run is below 80 %" in page
    rule = AlertRule.objects.get()
    for action, words in (
        ("test", "E-mail: the test was sent."),
        ("off", "is off."),
        ("on", "is on."),
        ("explode", "This button is not known"),
        ("delete", "are deleted."),
    ):
        answer = owner_client.post(f"/schedules/rules/{rule.pk}/act/", {"action": action}, follow=True)
        assert words in read_html(answer), action
    assert not AlertRule.objects.exists()
    entries = AuditEntry.objects.order_by("pk").values_list("action", "subject")
    rule_name = f"alert rule of schedule {schedule}"
    assert list(entries) == [(action, rule_name) for action in ("added", "changed", "changed", "deleted")]


def test_test_of_alert_rule_without_address_is_an_error(owner_client: Client) -> None:
    owner_client.post("/schedules/rules/new/", {"schedule": make_schedule(make_model()).pk, "kind": "drift"})
    url = f"/schedules/rules/{AlertRule.objects.get().pk}/act/"
    response = owner_client.post(url, {"action": "test"}, follow=True)
    message = list(response.context["messages"])[-1]
    assert (message.level_tag, "The rule has no address." in str(message)) == ("error", True)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"kind": "below_target"}, "Enter a number above 0, at most 100."),
        ({"kind": "explode"}, "Select a valid choice"),
        ({"kind": "drift", "email": "nobody"}, "Enter a valid email address."),
        ({"kind": "drift", "webhook": "gopher://x"}, "Webhook: Enter an address that begins with"),
    ],
)
def test_alert_rule_form_refuses_wrong_values(sent: dict[str, str], words: str, owner_client: Client) -> None:
    schedule = make_schedule(make_model())
    response = owner_client.post("/schedules/rules/new/", sent | {"schedule": str(schedule.pk)})
    page = read_html(response)
    assert response.status_code == 422
    assert "The rule was not saved." in page
    assert words in page
    assert not AlertRule.objects.exists()


def test_alert_rule_form_keeps_values_after_an_error(owner_client: Client) -> None:
    sent = {"kind": "below_target", "threshold": "150", "webhook": "https://hooks.example.test/a", "email": "nobody"}
    for target in ({}, {"schedule": str(make_schedule(make_model()).pk)}):
        page = read_html(owner_client.post("/schedules/rules/new/", sent | target))
        assert all(f'value="{sent[name]}"' in page for name in ("threshold", "webhook", "email"))
        assert ('value="below_target" selected' in page) == bool(target)


def test_alert_rule_form_refuses_unknown_schedule(owner_client: Client) -> None:
    sent = {"kind": "run_ended", "schedule": "999999"}
    assert owner_client.post("/schedules/rules/new/", sent).status_code == 404
    assert not AlertRule.objects.exists()


def test_alert_rule_pages_never_show_webhook_path(owner_client: Client) -> None:
    sent = {"kind": "run_ended", "webhook": "https://hooks.example.test/T0/s3cr3t"}
    page = read_html(owner_client.post("/schedules/rules/new/", sent, follow=True))
    assert "webhook at hooks.example.test" in page
    assert "s3cr3t" not in page
    assert "s3cr3t" not in read_html(owner_client.get("/settings/audit/"))


def test_alert_delivery_failed_is_shown_and_queued_again(owner_client: Client) -> None:
    delivery = make_alert_delivery(make_run())
    AlertDelivery.objects.update(state="failed", attempts=8, last_error="The webhook answered with status 500.")
    schedule_id = delivery.alert.rule.schedule_id
    for path in ("/", f"/schedules/{schedule_id}/"):
        page = read_html(owner_client.get(path))
        assert "Success dropped." in page
        assert "failed, 8 attempts. The webhook answered with status 500." in page
    path = f"/schedules/messages/{delivery.pk}/retry/"
    assert "The message is queued again." in read_html(owner_client.post(path, follow=True))
    assert "nothing was changed" in read_html(owner_client.post(path, follow=True))


def test_schedule_page_of_viewer_has_no_buttons(client: Client) -> None:
    viewer = User(username="viewer")
    set_role(viewer, Role.VIEWER)
    viewer.save()
    client.force_login(viewer)
    schedule = make_schedule(make_model())
    add_run(schedule, (5, 0))
    make_rule("drift", schedule, email="a@example.test")
    page = read_html(client.get(f"/schedules/{schedule.pk}/"))
    assert "the drift test finds a drop" in page
    for words in ("Run now", "Send test", "Add rule", "Save changes", "Pin as baseline"):
        assert words not in page
