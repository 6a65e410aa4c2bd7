"""Schedules, alert rules and alerts through the API."""

import pytest
from django.utils import timezone

from tests.api.requests import ApiClient
from tests.factories import make_model, make_provider, make_run
from tests.lab.schedules.scheduled import make_alert_delivery, make_rule, make_schedule
from toolbench.lab.models import Alert, AlertRule, AuditEntry, Run

pytestmark = pytest.mark.django_db
SETTINGS = {"name": "Nightly", "hour_utc": 3, "requests_per_run": 500, "requests_per_month": 9_000}


@pytest.fixture
def run_id(api: ApiClient) -> int:
    """A launched run, whose plan can be repeated."""
    model = make_model(provider=make_provider("Mine", kind="simulated", service="simulated"))
    body = {"models": [model.pk], "scenarios": ["happy_path"], "trials": 1, "probe_unknown": False}
    return int(api.post("/runs", body, status=201)["id"])


def test_schedule_api_creates_changes_launches_and_deletes(api: ApiClient, run_id: int) -> None:
    made = api.post("/schedules", SETTINGS | {"run": run_id}, status=201)
    address = f"/schedules/{made['id']}"
    assert api.send("PUT", address, SETTINGS | {"hour_utc": None, "every_hours": 6}).status_code == 200
    assert api.send("PATCH", address, {"active": False}).status_code == 200
    found = api.get(address)
    assert (found["every_hours"], found["hour_utc"], found["active"]) == (6, None, False)
    launched = api.post(f"{address}/runs", status=201)
    assert Run.objects.get(pk=launched["id"]).schedule_id == made["id"]
    assert "Nothing was launched" in api.problem("POST", f"{address}/runs", status=409)["detail"]
    assert api.problem("PUT", f"{address}/baseline", {"runs": [run_id]}, status=422)
    assert [row["name"] for row in api.get("/schedules")] == ["Nightly"]
    Run.objects.update(state=Run.State.FINISHED)
    lines = api.get(f"{address}/trend?measure=p95")
    assert [point["run"] for line in lines for point in line["points"]] == [launched["id"]]
    assert "measure" in api.problem("GET", f"{address}/trend?measure=fun", status=422)["detail"]
    assert api.send("DELETE", address).status_code == 204
    assert api.problem("GET", address, status=404)


def test_schedule_api_refuses_two_intervals_and_unknown_run(api: ApiClient, run_id: int) -> None:
    problem = api.problem("POST", "/schedules", SETTINGS | {"run": run_id, "every_hours": 2}, status=422)
    assert problem["errors"][0]["field"] == "every_hours"
    assert "no run 999999" in api.problem("POST", "/schedules", SETTINGS | {"run": 999999}, status=422)["detail"]


def test_alert_rule_api_never_returns_webhook_path(api: ApiClient, run_id: int) -> None:
    schedule = api.post("/schedules", SETTINGS | {"run": run_id}, status=201)["id"]
    rule = {
        "schedule": schedule,
        "kind": "below_target",
        "threshold": 80.0,
        "webhook": "https://hooks.test/secret-path",
    }
    made = api.post("/alert-rules", rule, status=201)
    assert (made["schedule"], made["kind"], made["threshold"], made["webhook_host"], made["open_alerts"]) == (
        schedule,
        "below_target",
        80.0,
        "hooks.test",
        0,
    )
    assert "secret-path" not in str(made)
    assert api.get(f"/schedules/{schedule}")["rules"] == [made]
    for path in (f"/schedules/{schedule}", "/alert-rules"):
        assert b"secret-path" not in api.send("GET", path).content
    assert api.problem("POST", "/alert-rules", {"kind": "nothing"}, status=422)["errors"][0]["field"] == "kind"


def test_alert_rule_api_switches_and_deletes_rule(api: ApiClient) -> None:
    rule = AlertRule.objects.create(kind="drift")
    assert api.send("PATCH", f"/alert-rules/{rule.pk}", {"active": False}).status_code == 200
    assert not AlertRule.objects.get().active
    assert "The rule has no address" in api.problem("POST", f"/alert-rules/{rule.pk}/test", status=409)["detail"]
    assert api.send("DELETE", f"/alert-rules/{rule.pk}").status_code == 204
    assert api.problem("POST", "/alert-messages/999999/retry", status=404)


def test_alert_rule_api_test_message_is_no_change_in_the_audit_list(api: ApiClient) -> None:
    rule = make_rule("drift", make_schedule(), email="a@example.test")
    assert api.post(f"/alert-rules/{rule.pk}/test") == {"sentence": "E-mail: the test was sent."}
    assert not AuditEntry.objects.exists()


def test_alert_api_lists_alerts_by_page_schedule_and_state(api: ApiClient) -> None:
    run, schedule = make_run(), make_schedule()
    delivery = make_alert_delivery(run, make_rule("drift", schedule, webhook="https://hooks.test/secret-path"))
    delivery.state, delivery.attempts, delivery.last_error = "failed", 8, "Status 500."
    delivery.save()
    rule = make_rule("spend", None, 5.0)
    resolved = Alert.objects.create(rule=rule, run=run, sentence="It cost $9.", resolved_at=timezone.now())
    Alert.objects.create(rule=rule, run=make_run(deleted_at=timezone.now()), sentence="It cost $8.")
    first = api.get("/alerts?limit=1")
    assert [(row["id"], row["rule"], row["messages"]) for row in first["items"]] == [(resolved.pk, rule.pk, [])]
    second = api.get(f"/alerts?limit=1&cursor={first['next']}")
    (alert,) = second["items"]
    assert (alert["id"], alert["kind"], alert["schedule"], alert["run"], alert["resolved_at"], second["next"]) == (
        delivery.alert_id,
        "drift",
        schedule.pk,
        run.pk,
        None,
        None,
    )
    assert alert["path"] == f"/runs/{run.pk}/"
    (message,) = alert["messages"]
    assert (message["id"], message["channel"], message["state"]) == (delivery.pk, "webhook", "failed")
    assert [row["id"] for row in api.get("/alerts?state=open")["items"]] == [alert["id"]]
    assert [row["id"] for row in api.get("/alerts?state=resolved")["items"]] == [resolved.pk]
    assert [row["id"] for row in api.get(f"/alerts?schedule={schedule.pk}")["items"]] == [alert["id"]]
    assert b"secret-path" not in api.send("GET", "/alerts").content
    assert "state" in api.problem("GET", "/alerts?state=old", status=422)["detail"]
