"""Schedules and alert rules through the API."""

import pytest

from tests.api.requests import ApiClient
from tests.factories import make_model, make_provider
from toolbench.lab.models import AlertRule, Run

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
    api.post("/alert-rules", rule, status=201)
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
