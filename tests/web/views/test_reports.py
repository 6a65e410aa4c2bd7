"""Exports of a run: report, trials, Inspect logs and spans."""

import csv
import io
import json
import zipfile

import pytest
from django.test import Client
from django.urls import reverse

from tests.factories import make_cell, make_config, make_provider, make_run, make_trial, make_trials
from tests.page_html import read_html
from toolbench.lab.models import Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    config = make_config(make_run(simulated=True))
    make_trials(make_cell(config), **{"pass": 1, "fail": 1, "queued": 1})
    return config.run


def test_run_report_is_archive(owner_client: Client, run: Run) -> None:
    response = owner_client.get(reverse("run-report", args=[run.pk]))
    assert response["Content-Disposition"] == f'attachment; filename="toolbench-run-{run.pk}.zip"'
    assert len(zipfile.ZipFile(io.BytesIO(response.getvalue())).namelist()) == 6


def test_run_trials_are_exported_as_csv(owner_client: Client, run: Run) -> None:
    response = owner_client.get(reverse("run-trials", args=[run.pk, "csv"]))
    rows = list(csv.DictReader(io.StringIO(response.getvalue().decode())))
    assert [(row["outcome"], row["state"]) for row in rows] == [("pass", "done"), ("fail", "done"), ("", "queued")]
    assert {(row["model"], row["simulated"]) for row in rows} == {("vendor/model-a", "True")}


def test_run_trials_are_exported_as_json(owner_client: Client, run: Run) -> None:
    found = json.loads(owner_client.get(reverse("run-trials", args=[run.pk, "json"])).getvalue())
    assert found["title"] == f"Trials of run {run.pk}"
    assert found["rows"][1]["category"] == "ASSERTION_FAILED"
    assert found["notes"] == ["Simulated models: no figure here was measured on a real model."]


@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_run_trials_export_masks_known_secrets(
    owner_client: Client, monkeypatch: pytest.MonkeyPatch, file_format: str
) -> None:
    secret = 'sk-"planted",0123456789'
    monkeypatch.setenv("PLANTED_KEY", secret)
    make_provider("Planted", key_source="environment", key_env="PLANTED_KEY")
    trial = make_trial(make_cell(make_config(make_run())), "fail", sentence=f"refused {secret}")
    exported = owner_client.get(reverse("run-trials", args=[trial.run_id, file_format])).getvalue().decode()
    rows = list(csv.DictReader(io.StringIO(exported))) if file_format == "csv" else json.loads(exported)["rows"]
    assert [row["sentence"] for row in rows] == [f"refused {'*' * len(secret)}"]


def test_run_exports_inspect_logs_and_spans(owner_client: Client, run: Run) -> None:
    response = owner_client.get(reverse("run-inspect", args=[run.pk]))
    assert response["Content-Disposition"] == f'attachment; filename="toolbench-inspect-{run.pk}.zip"'
    (name,) = zipfile.ZipFile(io.BytesIO(response.getvalue())).namelist()
    assert name.endswith(".eval")
    assert len(owner_client.get(reverse("run-otlp", args=[run.pk])).getvalue().splitlines()) == 2
    done, _, queued = run.trials.order_by("pk")
    assert owner_client.get(reverse("trial-otlp", args=[done.pk])).content.startswith(b'{"resourceSpans":[')
    assert owner_client.get(reverse("trial-otlp", args=[queued.pk])).status_code == 404
    assert reverse("trial-otlp", args=[done.pk]) in read_html(owner_client.get(reverse("trial", args=[done.pk])))


def test_run_export_of_private_cases_needs_choice(owner_client: Client) -> None:
    cell = make_cell(make_config(make_run()), "a_case_of_my_own")
    make_trials(cell, **{"pass": 1})
    page = read_html(owner_client.get(reverse("run", args=[cell.run_id])))
    for name in ("run-inspect", "run-otlp"):
        address = reverse(name, args=[cell.run_id])
        assert f'formaction="{address}"' in page
        assert "are private, so nothing was exported" in read_html(owner_client.get(address, follow=True))
        assert owner_client.get(address, {"private": "1"}).getvalue()


def test_run_exports_of_unknown_run_are_404(owner_client: Client) -> None:
    for name in ("run-report", "run-inspect", "run-otlp", "trial-otlp"):
        assert owner_client.get(reverse(name, args=[4711])).status_code == 404
    assert owner_client.get(reverse("run-trials", args=[4711, "csv"])).status_code == 404


def test_run_page_links_to_every_export(owner_client: Client, run: Run) -> None:
    page = read_html(owner_client.get(reverse("run", args=[run.pk])))
    for name in ("run-report", "run-inspect", "run-otlp"):
        assert reverse(name, args=[run.pk]) in page
    assert reverse("run-trials", args=[run.pk, "csv"]) in page
