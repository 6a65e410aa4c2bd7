"""Matrix, comparison, failures, latency, what-if and re-judging through the API."""

import pytest

from tests.api.requests import ApiClient
from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from toolbench.evals.causes.table import read_taxonomy_version
from toolbench.lab.models import Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def runs() -> list[Run]:
    """Two runs of different models."""
    made = []
    for name, passed in (("vendor/a", 8), ("vendor/b", 3)):
        run = make_run(title=name)
        make_trials(make_cell(make_config(run, make_model(name))), **{"pass": passed, "fail": 10 - passed})
        made.append(run)
    return made


def test_matrix_api_has_row_per_model(api: ApiClient, runs: list[Run]) -> None:
    found = api.get("/matrix")
    table = found["table"]
    place = table["columns"].index("given_ok")
    assert [row[place] for row in table["rows"]] == [8, 3]
    assert api.get("/matrix?model=vendor/a&scope=real")["table"]["rows"][0][0] == "vendor/a"
    assert len(api.get(f"/matrix?run={runs[0].pk}")["table"]["rows"]) == 1


def test_matrix_api_has_run_ids_on_request(api: ApiClient, runs: list[Run]) -> None:
    plain, full = (api.get(f"/matrix?run={runs[0].pk}{part}")["table"] for part in ("", "&ids=true"))
    assert "runs" not in plain["columns"]
    assert dict(zip(full["columns"], full["rows"][0], strict=True))["runs"] == str(runs[0].pk)
    assert len(plain["rows"][0]) == len(plain["columns"])


@pytest.mark.parametrize(
    "query",
    [
        *("metric=fun", "scope=all", "target=91", "run=x", "after=2026-13-40", "cell=1", "upto=12.0", "upto=1_000"),
        *("run=1&scope=real", "scope=runs", f"run={','.join(map(str, range(1, 61)))}"),
    ],
)
def test_matrix_api_names_invalid_parameter(api: ApiClient, query: str) -> None:
    assert query.partition("=")[0] in api.problem("GET", f"/matrix?{query}", status=422)["detail"]


def test_compare_api_returns_counts_of_both_sides(api: ApiClient, runs: list[Run]) -> None:
    first, second = (run.pk for run in runs)
    found = api.get(f"/compare?a_run={first}&b_run={second}&points=20")
    assert found["comparable"]
    assert found["points"] == 20
    whole = dict(zip(found["table"]["columns"], found["table"]["rows"][0], strict=True))
    assert (whole["first_k"], whole["second_k"]) == (8, 3)
    assert "two different sides" in api.problem("GET", f"/compare?a_run={first}", status=422)["detail"]
    assert "m_run" in api.problem("GET", f"/compare?a_run={first}&m_run=1", status=422)["detail"]


def test_compare_api_compares_three_sides_with_first(api: ApiClient, runs: list[Run]) -> None:
    third = make_run()
    make_trials(make_cell(make_config(third, make_model("vendor/c"))), **{"pass": 9, "fail": 1})
    sides = "&".join(f"{letter}_run={pk}" for letter, pk in zip("abc", (runs[0].pk, runs[1].pk, third.pk), strict=True))
    found = api.get(f"/compare?{sides}&metric=delivered")
    assert found["baseline"] == found["names"][0] == f"run {runs[0].pk}"
    assert (found["comparisons"], found["metric"], found["points"]) == (2, "End-to-end success", 7)
    rows = [dict(zip(found["table"]["columns"], row, strict=True)) for row in found["table"]["rows"]]
    assert [row["k"] for row in rows] == [8, 3, 9]
    assert [row["result"] for row in rows][1:] == ["cannot tell", "cannot tell"]
    assert rows[1]["low"] < rows[1]["difference"] < rows[1]["high"]


def test_failures_and_latency_api_return_figures_of_run(api: ApiClient, runs: list[Run]) -> None:
    cause = {"cause": "no_call", "cause_signature": "no_call · happy_path", "taxonomy": read_taxonomy_version()}
    runs[0].trials.filter(outcome="fail").update(**cause)
    found = api.get(f"/failures?run={runs[0].pk}")
    assert found["version"] == read_taxonomy_version()
    assert [(line["cause"], line["count"]) for line in found["causes"]] == [("no_call", 2)]
    assert [(group["cause"], group["count"], group["runs"]) for group in found["groups"]] == [("no_call", 2, 1)]
    rows = api.get(f"/runs/{runs[0].pk}/latency")["rows"]
    assert rows[0]["n"] == 10
    assert api.problem("GET", "/runs/999999/latency", status=404)


def test_what_if_api_replays_stored_trial(api: ApiClient, runs: list[Run]) -> None:
    trial = runs[0].trials.all()[0]
    found = api.post("/what-if", {"trial": trial.pk, "max_turns": 3})
    assert found["trials"] == 1
    assert "exactly one" in api.problem("POST", "/what-if", {"trial": 1, "run": 1}, status=422)["detail"]
    assert api.problem("POST", "/what-if", {"trial": 999999}, status=404)


def test_what_if_api_names_members_with_unknown_values(api: ApiClient, runs: list[Run]) -> None:
    body = {"trial": runs[0].trials.all()[0].pk, "strategy": "x", "presets": ["y z"], "text_format": "w"}
    errors = api.problem("POST", "/what-if", body, status=422)["errors"]
    assert [error["field"] for error in errors] == ["strategy", "presets", "text_format"]
    assert errors[1]["message"] == "Change presets: there is no y z."


def test_rejudge_api_sends_no_request(api: ApiClient, runs: list[Run]) -> None:
    found = api.post(f"/runs/{runs[0].pk}/rejudge")
    assert "No request was sent" in found["sentence"]
    assert api.get(f"/runs/{runs[0].pk}/judgements")["waiting"] is False


def test_metrics_api_lists_denominators(api: ApiClient) -> None:
    assert {"name", "label", "denominator"} == api.get("/metrics")[0].keys()
