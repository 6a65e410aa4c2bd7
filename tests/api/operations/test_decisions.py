"""Decisions and records through the API."""

import pytest

from tests.api.requests import ApiClient
from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_trials
from toolbench.lab.models import DecisionRecord, Run

pytestmark = pytest.mark.django_db
RULE = {"scope": "real", "want": "fastest", "success": 50, "within": None}


@pytest.fixture
def run() -> Run:
    """A run of two configurations, one of which is good."""
    run = make_run()
    for name, passed in (("vendor/a", 76), ("vendor/b", 10)):
        make_trials(make_cell(make_config(run, make_model(name))), **{"pass": passed, "fail": 76 - passed})
    return run


def test_rule_is_applied(api: ApiClient, run: Run) -> None:
    found = api.get("/decide?want=fastest&success=50&within=none")
    assert found["verdict"] in ("alone", "clear"), (found["sentence"], found["rows"])
    leader = next(row for row in found["rows"] if row["key"] == found["leader"])
    assert leader["passed"] == 76
    assert "run_ids" not in leader
    rows = api.get("/decide?want=fastest&success=50&within=none&ids=true")["rows"]
    assert [row["run_ids"] for row in rows] == [[run.pk]] * len(rows)
    assert api.problem("GET", "/decide?want=nicest", status=422)["errors"][0]["field"] == "want"


def test_decision_is_kept_and_compared_with_today(api: ApiClient, run: Run) -> None:
    kept = api.post("/decide/records", {"rule": RULE, "title": "Ship it", "note": "For the demo."}, status=201)
    assert [row["title"] for row in api.get("/decide/records")] == ["Ship it"]
    whole = api.get(f"/decide/records/{kept['id']}")
    assert whole["leader"]
    assert api.get(f"/decide/records/{kept['id']}/changes") == []
    assert "not ended" in api.problem("POST", f"/decide/records/{kept['id']}/confirmed", status=409)["detail"]
    assert api.problem("GET", "/decide/records/999999", status=404)


def test_confirmation_needs_a_run_that_can_be_tried(api: ApiClient, run: Run) -> None:
    kept = api.post("/decide/records", {"rule": RULE}, status=201)
    problem = api.send("POST", f"/decide/records/{kept['id']}/confirmation", {"trials": 20})
    assert problem.status_code in (201, 409)


def test_missing_trials_are_launched_only_as_shown(api: ApiClient, run: Run) -> None:
    problem = api.problem("POST", "/decide/trials", {"rule": RULE, "shown": "0"}, status=409)
    assert problem["detail"].startswith("Nothing was planned.")


def test_record_names_a_rule_that_cannot_be_read(api: ApiClient) -> None:
    problem = api.problem("POST", "/decide/records", {"rule": RULE | {"want": "nicest"}}, status=422)
    assert "want" in problem["detail"]
    assert not DecisionRecord.objects.exists()


def test_settings_of_a_configuration_name_no_key(api: ApiClient, run: Run) -> None:
    make_provider().key_env = "MY_KEY"
    config = run.configs.all()[0]
    files = api.get(f"/configs/{config.pk}/settings")
    assert "settings.json" in {found["file"] for found in files}
    assert api.problem("GET", "/configs/999999/settings", status=404)
