"""Trials through the API: filters, pages by cursor, steps, exact bytes, notes and human verdicts."""

import base64
import json
from dataclasses import fields
from typing import Any

import pytest

from tests.api.requests import ApiClient
from tests.factories import make_cell, make_config, make_provider, make_run, make_step, make_trial
from toolbench.api.documents.trials import TrialListQuery
from toolbench.lab.metrics.result_filter import ResultFilter
from toolbench.lab.models import AuditEntry, Trial
from toolbench.lab.results.trial_list import keyset
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials
from toolbench.lab.results.trial_list.sort_columns import SORT_COLUMNS, SORTS

pytestmark = pytest.mark.django_db
OUTCOMES = ("pass", "fail", "infra", "pass", "fail", "running", "queued")


@pytest.fixture
def trials() -> list[Trial]:
    """Trials of every outcome in two runs, some without times."""
    made = []
    for run in (make_run(), make_run()):
        cell = make_cell(make_config(run))
        made += [make_trial(cell, outcome) for outcome in OUTCOMES]
    return made


def read_all(api: ApiClient, query: str) -> list[dict[str, Any]]:
    found, cursor = [], ""
    while True:
        page = api.get(f"/trials?limit=3&{query}&cursor={cursor}")
        found += page["items"]
        if page["next"] is None:
            return found
        cursor = page["next"]


def test_trial_list_query_has_parameters_of_trial_filter() -> None:
    filter_fields = {field.name for field in fields(TrialFilter)} - {"chosen", "ignored", "layout"}
    assert set(TrialListQuery.model_fields) == filter_fields | {"after", "before", "upto", "cursor", "limit"}
    assert {field.name for field in fields(ResultFilter)} >= {"after", "before", "upto"}
    assert SORT_COLUMNS.keys() == SORTS.keys()


@pytest.mark.parametrize("sort", SORTS)
def test_trials_api_pages_have_each_trial_once_in_every_order(api: ApiClient, trials: list[Trial], sort: str) -> None:
    Trial.objects.filter(pk__in=[trial.pk for trial in trials[::3]]).update(duration_ms=None, started_at=None)
    found = read_all(api, f"sort={sort}")
    assert sorted(trial["id"] for trial in found) == sorted(trial.pk for trial in trials)
    whole = api.get(f"/trials?limit=200&sort={sort}")["items"]
    assert [trial["id"] for trial in found] == [trial["id"] for trial in whole]
    assert [trial["id"] for trial in found] == [row.id for row in get_trials(TrialFilter(sort=sort)).rows]


def test_trials_api_limits_sorted_list_to_newest_trials(
    api: ApiClient, trials: list[Trial], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyset, "MAX_COUNTED_TRIALS", 5)
    newest = sorted(trial.pk for trial in trials)[-5:]
    first = api.get("/trials?sort=slow&limit=3")
    make_trial(trials[0].cell)
    second = api.get(f"/trials?sort=slow&limit=3&cursor={first['next']}")
    assert [first["limited"], second["limited"]] == [True, True]
    assert set(newest) <= {trial["id"] for trial in (*first["items"], *second["items"])}
    assert len(read_all(api, "sort=order")) == len(trials) + 1
    of_run = api.get(f"/trials?sort=slow&run={trials[-1].run_id}")
    assert (len(of_run["items"]), of_run["limited"]) == (7, False)


def test_trials_api_filters_by_run_outcome_and_model(api: ApiClient, trials: list[Trial]) -> None:
    run = trials[0].run_id
    assert len(read_all(api, f"run={run}&outcome=fail")) == 2
    assert read_all(api, "model=nothing") == []
    assert {trial["run"] for trial in read_all(api, f"runs={run}")} == {run}


@pytest.mark.parametrize("moment", ["2024-01-01T00:00:00+23:59", "2024-01-01T00:00:00", "0001-01-01T00:00:00+05:00"])
def test_trials_api_refuses_cursor_with_invalid_time(api: ApiClient, moment: str) -> None:
    cursor = base64.urlsafe_b64encode(json.dumps([moment, 1, 0]).encode()).decode().rstrip("=")
    answer = api.send("GET", f"/trials?sort=newest&cursor={cursor}")
    assert answer.status_code == (200 if moment.startswith("2024-01-01T00:00:00+") else 422)


@pytest.mark.parametrize("query", ["outcome=good", "run=x", "without=a", "had=nothing", "cursor=abc", "nothing=1"])
def test_trials_api_names_invalid_parameter(api: ApiClient, query: str) -> None:
    problem = api.problem("GET", f"/trials?{query}", status=422)
    assert query.partition("=")[0] in problem["detail"]


def test_trial_api_returns_steps_and_exact_bytes(api: ApiClient, trials: list[Trial]) -> None:
    raw = b'{"choices": [\xff\x00]}'
    step = make_step(
        trials[1], bodies={"request": b"{}", "response": raw, "facts": {"text": "so", "usage": float("nan")}}
    )
    found = api.get(f"/trials/{trials[1].pk}")
    assert found["trial"]["outcome"] == "fail"
    assert found["headline"] == "The patch was refused and never sent again."
    assert [row["id"] for row in found["steps"]] == [step.pk]
    answer = api.send("GET", found["steps"][0]["response_url"].removeprefix("/api/v1"))
    assert (answer.content, answer.headers["Content-Type"]) == (raw, "application/octet-stream")
    assert api.get(f"/steps/{step.pk}")["details"] == {"text": "so", "usage": None}


def test_trial_api_masks_known_secret(api: ApiClient, trials: list[Trial], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", "sk-planted-0123456789")
    make_provider("Leaky", key_source="environment", key_env="PLANTED")
    bodies = {"response": b"sk-planted-0123456789", "facts": {"text": "sk-planted-0123456789"}}
    step = make_step(trials[0], bodies=bodies)
    Trial.objects.filter(pk=trials[0].pk).update(final_text=b"sk-planted-0123456789")
    for path in (f"/trials/{trials[0].pk}", f"/steps/{step.pk}", f"/steps/{step.pk}/response"):
        answer = api.send("GET", path)
        assert (answer.status_code, b"planted" in answer.content) == (200, False), path


def test_trial_api_saves_note_and_verdict_with_audit_entries(api: ApiClient, trials: list[Trial]) -> None:
    api.send("PATCH", f"/trials/{trials[0].pk}", {"label": "odd", "note": "Look at turn 2."})
    api.post(f"/trials/{trials[0].pk}/verdict", {"verdict": "fail", "reason": "It guessed."})
    found = api.get(f"/trials/{trials[0].pk}")
    assert (found["trial"]["label"], found["note"]) == ("odd", "Look at turn 2.")
    assert found["human_verdicts"][0]["reason"] == "It guessed."
    assert AuditEntry.objects.count() == 2
    problem = api.problem("POST", f"/trials/{trials[-1].pk}/verdict", {"verdict": "fail", "reason": "x"}, status=422)
    assert problem["errors"]


def test_trial_api_unknown_trial_and_step_return_404(api: ApiClient) -> None:
    for path in ("/trials/999999", "/steps/999999", "/steps/999999/request", "/steps/999999/curl"):
        assert api.problem("GET", path, status=404)["detail"].startswith("There is no")
