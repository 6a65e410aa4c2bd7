"""Decisions and records through the API."""

import pytest

from tests.api.requests import ApiClient
from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from tests.web.views.endpoints.test_gateway import measured
from toolbench.lab.credentials.keys import encrypt
from toolbench.lab.models import DecisionRecord, Provider, Run, RunConfig

__all__ = ["measured"]  # a fixture

pytestmark = pytest.mark.django_db
RULE = {"scope": "real", "want": "fastest", "success": 50, "within": None}


@pytest.fixture
def run() -> Run:
    """A run of two configurations, one of which passes every trial."""
    run = make_run()
    for name, passed in (("vendor/a", 76), ("vendor/b", 10)):
        make_trials(make_cell(make_config(run, make_model(name))), **{"pass": passed, "fail": 76 - passed})
    return run


def test_decide_api_returns_leader_and_run_ids_on_request(api: ApiClient, run: Run) -> None:
    found = api.get("/decide?want=fastest&success=50&within=none")
    assert found["verdict"] == "alone", (found["sentence"], found["rows"])
    leader = next(row for row in found["rows"] if row["key"] == found["leader"])
    assert leader["passed"] == 76
    assert "run_ids" not in leader
    rows = api.get("/decide?want=fastest&success=50&within=none&ids=true")["rows"]
    assert [row["run_ids"] for row in rows] == [[run.pk]] * len(rows)
    assert api.problem("GET", "/decide?want=nicest", status=422)["errors"][0]["field"] == "want"


def test_decision_records_api_saves_record_and_lists_changes(api: ApiClient, run: Run) -> None:
    record = api.post("/decide/records", {"rule": RULE, "title": "Ship it", "note": "For the demo."}, status=201)
    assert [row["title"] for row in api.get("/decide/records")] == ["Ship it"]
    whole = api.get(f"/decide/records/{record['id']}")
    assert whole["leader"]
    assert api.get(f"/decide/records/{record['id']}/changes") == []
    assert "not finished" in api.problem("POST", f"/decide/records/{record['id']}/confirmed", status=409)["detail"]
    assert api.problem("GET", "/decide/records/999999", status=404)


def test_decision_records_api_refuses_note_that_would_be_cut(api: ApiClient, run: Run) -> None:
    problem = api.problem("POST", "/decide/records", {"rule": RULE, "note": "x" * 4_001}, status=422)
    assert problem["errors"][0]["field"] == "note"
    record = api.post("/decide/records", {"rule": RULE, "note": "x" * 4_000}, status=201)
    assert len(api.get(f"/decide/records/{record['id']}")["note"]) == 4_000


def test_confirmation_api_refuses_settings_that_changed(api: ApiClient, run: Run) -> None:
    record = api.post("/decide/records", {"rule": RULE}, status=201)
    problem = api.problem("POST", f"/decide/records/{record['id']}/confirmation", {"trials": 20}, status=409)
    assert "has changed, so other settings would be tried" in problem["detail"]
    assert Run.objects.get() == run


def test_confirmation_api_starts_run_of_leader(api: ApiClient, measured: RunConfig) -> None:
    record = api.post("/decide/records", {"rule": RULE | {"scope": "demo"}}, status=201)
    confirmation = api.post(f"/decide/records/{record['id']}/confirmation", {"trials": 20}, status=201)
    assert (confirmation["purpose"], confirmation["trial_count"]) == ("confirm", 20)
    assert Run.objects.get(pk=confirmation["id"]).configs.get().model_name == measured.model_name


def test_missing_trials_api_launches_nothing_without_missing_trials(api: ApiClient, run: Run) -> None:
    problem = api.problem("POST", "/decide/trials", {"rule": RULE, "shown": "0"}, status=409)
    assert problem["detail"].startswith("No trials were launched.")


def test_decision_records_api_with_run_compares_only_that_run(api: ApiClient, run: Run) -> None:
    other = make_run()
    for name, passed in (("vendor/a", 10), ("vendor/b", 76)):
        make_trials(make_cell(make_config(other, make_model(name))), **{"pass": passed, "fail": 76 - passed})
    rule = {"want": "fastest", "success": 50.0, "within": None, "run": [other.pk]}
    record = api.post("/decide/records", {"rule": rule}, status=201)
    saved = api.get(f"/decide/records/{record['id']}")
    assert {run_id for row in saved["evidence"] for run_id in row["run_ids"]} == {other.pk}
    assert "vendor/b" in saved["title"]
    for scope in ("real", "demo"):
        assert "run" in api.problem("GET", f"/decide?scope={scope}&run={other.pk}", status=422)["detail"]
        assert "run" in api.problem("POST", "/decide/records", {"rule": rule | {"scope": scope}}, status=422)["detail"]
    assert DecisionRecord.objects.count() == 1


def test_decision_records_api_keeps_every_digit_of_rule(api: ApiClient, run: Run) -> None:
    rule = RULE | {"success": 50.1234567, "within": 12_345.678}
    record = api.post("/decide/records", {"rule": rule}, status=201)
    saved = api.get(f"/decide/records/{record['id']}")["rule"]
    assert (saved["success"], saved["within_ms"]) == (50.1234567, 12_345_678.0)


def test_decision_records_api_refuses_unknown_rule_value(api: ApiClient) -> None:
    problem = api.problem("POST", "/decide/records", {"rule": RULE | {"want": "nicest"}}, status=422)
    assert "want" in problem["detail"]
    assert not DecisionRecord.objects.exists()


def test_export_settings_api_never_returns_the_key(api: ApiClient, run: Run) -> None:
    Provider.objects.update(key_source=Provider.KeySource.STORED, key_encrypted=encrypt("sk-not-in-any-file"))
    config = run.configs.all()[0]
    files = api.get(f"/configs/{config.pk}/settings")
    assert "settings.json" in {found["file"] for found in files}
    assert [found["file"] for found in files if "sk-not-in-any-file" in found["text"]] == []
    assert api.problem("GET", "/configs/999999/settings", status=404)
