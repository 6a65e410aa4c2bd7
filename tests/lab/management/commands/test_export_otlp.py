"""`manage.py export_otlp`: writing spans to a file, and sending them to an endpoint."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.factories import make_cell, make_config, make_run, make_trial
from toolbench.lab.models import Run
from toolbench.providers.scripted_server import ScriptedReply, ScriptedServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    cell = make_cell(make_config(make_run()))
    for outcome in ("pass", "fail", "running"):
        make_trial(cell, outcome)
    return cell.run


def run_command(*arguments: object) -> str:
    output = io.StringIO()
    call_command("export_otlp", *map(str, arguments), stdout=output, stderr=output)
    return output.getvalue()


def test_export_otlp_writes_a_run_or_one_trial(run: Run, tmp_path: Path) -> None:
    assert run_command(run.pk, "--out", tmp_path / "run.jsonl") == f"2 trials in {tmp_path / 'run.jsonl'}\n"
    assert len([json.loads(line) for line in (tmp_path / "run.jsonl").read_bytes().splitlines()]) == 2
    trial_path = tmp_path / "trial.jsonl"
    assert run_command("--trial", run.trials.earliest("pk").pk, "--out", trial_path) == f"1 trial in {trial_path}\n"
    assert trial_path.read_bytes() in (tmp_path / "run.jsonl").read_bytes()


def test_export_otlp_sends_with_headers_of_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc, x-scope=lab")
    with ScriptedServer(lambda request: ScriptedReply(200)) as server:
        assert run_command(run.pk, "--endpoint", server.base_url) == "2 trials sent.\n"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{server.base_url}/v1/traces")
        assert run_command(run.pk, "--send") == "2 trials sent.\n"
        first, second = server.seen
    assert (first.headers["authorization"], first.headers["x-scope"]) == ("Bearer abc", "lab")
    assert first.path == second.path
    assert first.path.endswith("/v1/traces")


def test_export_otlp_sends_by_the_chosen_protocol(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(lambda request: ScriptedReply(200)) as server:
        run_command(run.pk, "--endpoint", server.base_url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
        run_command(run.pk, "--endpoint", server.base_url)
        run_command(run.pk, "--endpoint", server.base_url, "--protocol", "http/protobuf")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        with pytest.raises(CommandError, match="protocol grpc is not supported"):
            run_command(run.pk, "--endpoint", server.base_url)
        types = [request.headers["content-type"] for request in server.seen]
    assert types == ["application/x-protobuf", "application/json", "application/x-protobuf"]


def test_export_otlp_names_what_is_missing(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    (tmp_path / "there").touch()
    refusals: list[tuple[tuple[object, ...], str]] = [
        ((), "Name a run"),
        ((run.pk, "--trial", 1), "Name a run"),
        ((run.pk, "--send"), "--endpoint URL"),
        ((999_999,), "There is no run 999999"),
        (("--trial", 999_999), "There is no trial 999999"),
        (("--trial", 0), "There is no trial 0"),
        ((run.pk, "--out", tmp_path / "there"), "File exists"),
    ]
    for arguments, sentence in refusals:
        with pytest.raises(CommandError, match=sentence):
            run_command(*arguments)
    with ScriptedServer(lambda request: ScriptedReply(401)) as server, pytest.raises(CommandError, match="status 401"):
        run_command(run.pk, "--endpoint", server.base_url)
