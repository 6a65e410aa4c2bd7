"""Share links and files of a run through the API."""

import io
import json
import zipfile

import pytest
from django.test import Client

from tests.api.requests import ApiClient
from tests.factories import make_cell, make_config, make_provider, make_run, make_trial, make_trials
from toolbench.lab.models import Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    """A run with trials."""
    run = make_run()
    make_trials(make_cell(make_config(run)), **{"pass": 3, "fail": 1})
    return run


def test_share_link_api_makes_lists_and_revokes_link(api: ApiClient, client: Client, run: Run) -> None:
    made = api.post("/share-links", {"kind": "run", "target": run.pk}, status=201)
    assert client.get(made["url"]).status_code == 200
    assert [link["id"] for link in api.get("/share-links")] == [made["id"]]
    assert api.send("DELETE", f"/share-links/{made['id']}").status_code == 204
    assert client.get(made["url"]).status_code == 404
    assert api.problem("DELETE", f"/share-links/{made['id']}", status=404)
    problem = api.problem("POST", "/share-links", {"kind": "trial", "target": 999999}, status=422)
    assert problem["errors"][0]["field"] == "target"


def test_run_trials_api_masks_known_secrets(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_KEY", "sk-planted-0123456789")
    make_provider("Planted", key_source="environment", key_env="PLANTED_KEY")
    trial = make_trial(make_cell(make_config(make_run())), "fail", sentence="refused sk-planted-0123456789")
    table = json.loads(b"".join(api.send("GET", f"/runs/{trial.run_id}/trials")))
    assert table["rows"][0][table["columns"].index("sentence")] == f"refused {'*' * 21}"


def test_run_files_api_downloads_every_format(api: ApiClient, run: Run) -> None:
    assert b"3/4" in api.send("GET", f"/runs/{run.pk}/report.html").content
    for name, file_kind in {"report.zip": "run", "bundle.zip": "bundle", "inspect.zip": "inspect"}.items():
        answer = api.send("GET", f"/runs/{run.pk}/{name}")
        assert f'"toolbench-{file_kind}-{run.pk}.zip"' in answer.headers["Content-Disposition"]
        assert zipfile.ZipFile(io.BytesIO(b"".join(answer))).namelist()
    table = json.loads(b"".join(api.send("GET", f"/runs/{run.pk}/trials")))
    assert list(table) == ["title", "notes", "columns", "rows"]
    assert [len(row) for row in table["rows"]] == [len(table["columns"])] * 4
    assert len(b"".join(api.send("GET", f"/runs/{run.pk}/otlp.jsonl")).splitlines()) == 4
    trial_id = run.trials.earliest("pk").pk
    assert api.send("GET", f"/trials/{trial_id}/otlp.jsonl").content.startswith(b'{"resourceSpans":')
    assert api.problem("GET", "/trials/999999/otlp.jsonl", status=404)
    for name in ("report.html", "report.zip", "bundle.zip", "inspect.zip", "otlp.jsonl", "trials"):
        assert api.problem("GET", f"/runs/999999/{name}", status=404)
