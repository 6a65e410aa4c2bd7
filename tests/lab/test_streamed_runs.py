"""Streaming as a dimension of a run, from the request to the trial page."""

import json
import random

import pytest

from tests.lab.scripted_runs import answer_correctly, build_request, launch_run, make_scripted_model, run_worker_session
from toolbench.lab.models import RunConfig, StepBody, Trial
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.results.matrix.export import export_matrix
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.table import get_matrix
from toolbench.lab.results.trial.page import get_trial_page
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.traces.step_facts import load_details
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer
from toolbench.providers.simulated.stream_events import build_events, encode_chat_events

pytestmark = pytest.mark.django_db(transaction=True)


def answer_as_stream(seen: ReceivedRequest) -> ScriptedReply:
    """Give the answers of `answer_correctly`, as a stream if the request asks for one."""
    answer = answer_correctly(seen)
    if not seen.json().get("stream"):
        return answer
    assert isinstance(answer.body, bytes)
    events = build_events(json.loads(answer.body), random.Random(1), with_usage=True)
    return ScriptedReply(
        200, {"content-type": "text/event-stream", "connection": "close"}, b"".join(encode_chat_events(events))
    )


def test_streamed_run_has_both_modes_named_in_matrix_and_export() -> None:
    with ScriptedServer(answer_as_stream) as scripted:
        model = make_scripted_model(scripted)
        run = launch_run(model, streams=(False, True), trials=2)
        run_worker_session(model)
        stream_flags = [bool(seen.json().get("stream")) for seen in scripted.seen]
    assert (stream_flags.count(True), stream_flags.count(False)) == (6, 6)
    whole, streamed = RunConfig.objects.filter(run=run).order_by("position")
    assert ("streamed" in str(whole), "streamed" in str(streamed)) == (False, True)
    trials = Trial.objects.filter(run=run, config=streamed)
    assert [trial.outcome for trial in trials] == ["pass"] * 2
    assert all(trial.first_byte_ms and trial.first_token_ms and trial.first_call_ms for trial in trials)
    assert not Trial.objects.filter(config=whole).exclude(first_token_ms=None).exists()
    query = MatrixQuery(scope="runs", runs=(run.pk,))
    matrix = get_matrix(query)
    assert [row.settings["stream"] for row in matrix.rows] == ["", "streamed"]
    assert "stream" in matrix.differing_settings
    export = export_matrix(query)
    assert [row[export.columns.index("answers")] for row in export.rows] == ["", "streamed"]
    assert None not in [row[export.columns.index("p95_ms")] for row in export.rows]


def test_streamed_run_stores_exact_bytes_and_chunks() -> None:
    with ScriptedServer(answer_as_stream) as scripted:
        model = make_scripted_model(scripted)
        run = launch_run(model, streams=(True,), trials=1)
        run_worker_session(model)
    trial = Trial.objects.get(run=run)
    body = StepBody.objects.filter(step__trial=trial).order_by("step__ordinal")[0]
    assert bytes(body.response).startswith(b"data: {")
    facts = load_details(body.facts)
    assert facts["stream"]
    page = get_trial_page(trial.pk, TrialFilter(), key="1.response")
    assert page.step is not None
    assert f" bytes in {len(facts['chunks'])} chunk" in page.step.left.note
    assert page.step.left.code.lines[-2].text == "data: [DONE]"


def test_run_request_streams_survive_json_round_trip() -> None:
    request = RunRequest(models=(1,), streams=(False, True))
    assert RunRequest.from_json(request.to_json()) == request
    assert build_request().streams == (False,)
