"""Runs through the API: list, plan, launch with a key, control."""

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries

from tests.api.requests import ApiClient
from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_trials
from toolbench.lab.models import AuditEntry, Model, Run, Trial
from toolbench.lab.results.run import page

pytestmark = pytest.mark.django_db


@pytest.fixture
def model() -> Model:
    """A model whose requests cost nothing."""
    return make_model(provider=make_provider("Mine", kind="simulated", service="simulated"))


def plan(model: Model, **fields: object) -> dict[str, object]:
    return {"models": [model.pk], "scenarios": ["happy_path"], "trials": 2, "probe_unknown": False} | fields


def test_runs_api_pages_by_cursor(api: ApiClient) -> None:
    runs = [make_run(title=f"run {number}") for number in range(3)]
    make_trials(make_cell(make_config(runs[2])), **{"pass": 3, "fail": 1})
    first = api.get("/runs?limit=2")
    assert [item["run"]["title"] for item in first["items"]] == ["run 2", "run 1"]
    assert first["items"][0]["counts"]["passed"] == 3
    assert first["items"][0]["answered"]["share"] == 0.75
    last = api.get(f"/runs?limit=2&cursor={first['next']}")
    assert [item["run"]["title"] for item in last["items"]] == ["run 0"]
    assert last["next"] is None


def test_runs_api_list_needs_8_queries_at_most(
    api: ApiClient, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(9):
        make_cell(make_config(make_run()))
    with django_assert_max_num_queries(8):
        assert len(api.get("/runs")["items"]) == 9


def test_runs_api_filters_by_kind_and_label(api: ApiClient) -> None:
    make_run(title="played", simulated=True)
    make_run(title="mine", label="kept")
    assert [item["run"]["title"] for item in api.get("/runs?kind=simulated")["items"]] == ["played"]
    assert [item["run"]["title"] for item in api.get("/runs?label=kept")["items"]] == ["mine"]


def test_plan_api_estimates_run_and_writes_nothing(api: ApiClient, model: Model) -> None:
    found = api.post("/runs/plan", plan(model))
    assert (found["cells"], found["trials"]) == (1, 2)
    assert found["most_requests"] >= 2
    assert found["agreed"] == 0
    assert not Run.objects.exists()


def test_launch_api_names_every_invalid_field(api: ApiClient, model: Model) -> None:
    body = {"models": [999999], "scenarios": ["nothing"], "methods": ["native"], "agreed": 1}
    problem = api.problem("POST", "/runs", body, status=422)
    assert {error["field"] for error in problem["errors"]} == {"models", "scenarios"}
    problem = api.problem("POST", "/runs", plan(model, trials="many", extra=1), status=422)
    assert {error["field"]: error["message"] for error in problem["errors"]} == {
        "trials": "Give trials as a whole number.",
        "extra": "Remove extra: there is no such field.",
    }
    assert not Run.objects.exists()


def test_launch_api_repeated_idempotency_key_returns_same_run(api: ApiClient, model: Model, owner: User) -> None:
    first = api.post("/runs", plan(model), status=201, Idempotency_Key="k-1")
    again = api.post("/runs", plan(model), status=200, Idempotency_Key="k-1")
    assert again["id"] == first["id"]
    answer = api.send("POST", "/runs", plan(model, trials=3), Idempotency_Key="k-1")
    assert answer.status_code == 409
    assert Run.objects.get().owner == owner
    assert Trial.objects.count() == 2
    assert [str(entry) for entry in AuditEntry.objects.all()] == [f"owner launched run {first['id']}"]


def test_launch_api_refused_launch_leaves_idempotency_key_unused(api: ApiClient, model: Model) -> None:
    assert api.send("POST", "/runs", plan(model, scenarios=["nothing"]), Idempotency_Key="k").status_code == 422
    api.post("/runs", plan(model), status=201, Idempotency_Key="k")


def test_run_api_repeated_idempotency_key_repeats_and_adds_once(api: ApiClient, model: Model) -> None:
    run_id = api.post("/runs", plan(model), status=201)["id"]
    cell = api.get(f"/runs/{run_id}")["configs"][0]["cells"][0]["cell_id"]
    repeat, trials = f"/runs/{run_id}/repeat", f"/runs/{run_id}/cells/{cell}/trials"
    again = api.post(repeat, {"kind": "aa"}, status=201, Idempotency_Key="again")
    assert api.post(repeat, {"kind": "aa"}, status=200, Idempotency_Key="again")["id"] == again["id"]
    added = api.post(trials, {"count": 3}, Idempotency_Key="more")
    assert api.post(trials, {"count": 3}, Idempotency_Key="more") == added
    assert Run.objects.count() == 2
    assert Run.objects.get(pk=run_id).trial_count == 5
    for path, body, key in ((repeat, {}, "again"), (trials, {"count": 4}, "more"), (trials, {"count": 3}, "again")):
        answer = api.send("POST", path, body, Idempotency_Key=key)
        assert (answer.status_code, b"used for another request" in answer.content) == (409, True)
    subjects = [entry.subject for entry in AuditEntry.objects.order_by("pk")]
    assert subjects == [f"run {run_id}", f"run {again['id']}", f"run {run_id}: add"]


def test_launch_api_requires_confirmation_of_paid_requests(api: ApiClient) -> None:
    body = plan(make_model(), trials=50)
    problem = api.problem("POST", "/runs", body, status=409)
    assert problem["title"] == "Paid requests have to be confirmed"
    assert problem["paid_requests"] == {"Example": problem["agreed"]}
    run = api.post("/runs", body | {"agreed": problem["agreed"]}, status=201)
    assert run["state"] == "running"


def test_run_api_pages_configurations(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MAX_PAGE_ROWS", 1)
    run = make_run()
    for name in ("vendor/a", "vendor/b"):
        make_trials(make_cell(make_config(run, make_model(name))), **{"pass": 1})
    first, second, last = (api.get(f"/runs/{run.pk}{part}") for part in ("", "?page=2", "?page=9"))
    assert [[row["model"] for row in found["configs"]] for found in (first, second)] == [["vendor/a"], ["vendor/b"]]
    assert (first["page"], first["pages"], first["counts"]["trials"]) == (1, 2, 2)
    assert last == second


def test_run_api_pauses_limits_cancels_repeats_and_deletes_run(api: ApiClient, model: Model) -> None:
    run_id = api.post("/runs", plan(model), status=201)["id"]
    paused = api.post(f"/runs/{run_id}/pause")
    assert (paused["state"], paused["stopped_reason"]) == ("paused", "The user owner paused the run.")
    assert api.problem("POST", f"/runs/{run_id}/pause", status=409)["detail"].endswith("cannot be paused.")
    assert api.post(f"/runs/{run_id}/limits", {"request_cap": 50, "token_cap": None})["request_cap"] == 50
    assert api.problem("DELETE", f"/runs/{run_id}", status=409)["detail"].startswith(f"Run {run_id} is running")
    assert api.post(f"/runs/{run_id}/cancel")["state"] == "cancelled"
    assert api.post(f"/runs/{run_id}/resume-cancelled", {})["sentence"].startswith("2 cancelled trials")
    cell = api.get(f"/runs/{run_id}")["configs"][0]["cells"][0]["cell_id"]
    added = api.post(f"/runs/{run_id}/cells/{cell}/trials", {"count": 3})
    assert added["sentence"].startswith("3 trials added")
    api.post(f"/runs/{run_id}/cancel")
    again = api.post(f"/runs/{run_id}/repeat", {"kind": "aa"}, status=201)
    assert again["repeat_of"] == run_id
    assert api.send("DELETE", f"/runs/{run_id}").status_code == 204
    assert api.problem("GET", f"/runs/{run_id}", status=404)["detail"].startswith(f"There is no run {run_id}")


def test_run_api_returns_cells_and_failures(api: ApiClient) -> None:
    run = make_run()
    make_trials(make_cell(make_config(run)), **{"pass": 3, "fail": 1})
    found = api.get(f"/runs/{run.pk}")
    assert found["configs"][0]["cells"][0]["answered"]["k"] == 3
    assert found["failures"][0]["count"] == 1
    assert found["counts"]["trials"] == 4


def test_run_api_unchanged_run_returns_304_without_body(api: ApiClient) -> None:
    run = make_run()
    etag = api.send("GET", f"/runs/{run.pk}").headers["ETag"]
    answer = api.send("GET", f"/runs/{run.pk}", If_None_Match=etag)
    assert (answer.status_code, answer.content) == (304, b"")
    Run.objects.update(label="new")
    assert api.send("GET", f"/runs/{run.pk}", If_None_Match=etag).status_code == 200


def test_runs_api_names_unknown_parameter(api: ApiClient) -> None:
    assert "labels" in api.problem("GET", "/runs?labels=x", status=422)["detail"]


def test_run_settings_api_names_origin_of_setting(api: ApiClient) -> None:
    config = make_config(make_run())
    found = api.get(f"/runs/{config.run_id}/settings?config={config.pk}&scenario=happy_path")
    chosen = {row["key"]: (row["value"], row["origin"]) for row in found["chosen"]}
    assert chosen["llm_options_defaults.temperature"] == (0.7, "profile")
    assert api.problem("GET", f"/runs/{config.run_id}/settings?config=999999", status=404)
    assert api.problem("GET", f"/runs/{make_run().pk}/settings", status=404)
