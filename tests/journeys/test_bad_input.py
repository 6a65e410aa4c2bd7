"""What people type and what providers answer amiss: each gets a clear message, nothing is lost, nothing breaks."""

import json
from collections.abc import Callable

import pytest
from django.test import Client

from tests.journeys.conftest import StartScriptedServer
from tests.lab.scripted_runs import answer_correctly, launch_run, make_scripted_model, run_worker_session
from tests.page_html import read_html
from toolbench.lab.endpoints import connect
from toolbench.lab.models import Model, Run, Trial
from toolbench.providers.scripted_server import (
    ReceivedRequest,
    ScriptedReply,
    chat_reply,
    error_reply,
    json_reply,
    text_reply,
)

pytestmark = pytest.mark.django_db(transaction=True)

JSON_TYPE = {"content-type": "application/json"}
NOT_JSON = {
    "a bracket": ("{", "This is not JSON"),
    "words": ("nonsense", "This is not JSON"),
    "100,000 brackets": ("[" * 100_000, "This is not JSON"),
    "a list": ("[1, 2]", "JSON object"),
    "a number": ("7", "JSON object"),
    "cut in a string": ('{"a": "', "This is not JSON"),
}
JSON_FIELDS = (("/providers/new/", "headers"), ("/providers/new/", "option_defaults"), ("/runs/new/", "overrides"))
PLANNED = {"profiles": "default", "strategies": "production", "methods": "native", "trials": "1"}
PLANNED |= {"instance_kind": "parity", "tool_use_mode": "enforced", "tool_failure_policy": "fatal"}

# What a provider answers, the failure class that follows, and words of the sentence that says what happened.
ODD_ANSWERS: dict[str, tuple[ScriptedReply, str, str]] = {
    "unknown model": (error_reply(404, "No such model: ghost"), "not_found", "ghost"),
    "redirect": (ScriptedReply(302, {"location": "https://elsewhere.test/"}), "redirect_refused", "redirect"),
    "a web page": (ScriptedReply(200, {"content-type": "text/html"}, b"<html>Welcome</html>"), "answer_unreadable", ""),
    "garbage": (ScriptedReply(200, JSON_TYPE, b"\x00\xff\xfegarbage"), "answer_unreadable", ""),
    "nothing": (ScriptedReply(200, JSON_TYPE, b""), "answer_unreadable", ""),
    "an error inside": (json_reply({"error": {"message": "upstream overloaded", "code": 529}}), "upstream_failed", ""),
    "no choices": (json_reply({"choices": []}), "answer_malformed", ""),
    "brackets as body": (ScriptedReply(200, JSON_TYPE, b"[" * 100_000), "answer_unreadable", ""),
    "a format error as 500": (
        error_reply(500, "The model produced output that does not match the expected peg-native format"),
        "answer_off_format",
        "",
    ),
}


def shown(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return read_html(answer)


def tried(
    scripting: StartScriptedServer, play: Callable[[ReceivedRequest], ScriptedReply], scenario: str = "happy_path"
) -> Trial:
    """One trial on a provider that answers so, to its end."""
    model = make_scripted_model(scripting(play), max_attempts=1)
    run = launch_run(model, scenarios=(scenario,), trials=1)
    assert run_worker_session(model) == 1
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    return run.trials.get()


@pytest.mark.parametrize(("path", "field"), JSON_FIELDS, ids=[field for _, field in JSON_FIELDS])
@pytest.mark.parametrize(("text", "sentence"), NOT_JSON.values(), ids=NOT_JSON)
def test_what_is_no_json_is_said_beside_its_field_and_what_was_typed_stays(
    owner_client: Client, catalogue: None, path: str, field: str, text: str, sentence: str
) -> None:
    before = (Run.objects.count(), Model.objects.count())
    form = {
        "name": "Kept",
        "title": "Kept",
        "base_url": "http://127.0.0.1:9",
        "models": Model.objects.values_list("pk", flat=True)[0],
    }
    answer = owner_client.post(path, PLANNED | form | {"scenarios": "happy_path", field: text})

    page = read_html(answer)
    assert answer.status_code in (200, 422)
    assert sentence in page
    assert "Kept" in page
    assert (Run.objects.count(), Model.objects.count()) == before


@pytest.mark.parametrize(("answer", "failure_class", "words"), ODD_ANSWERS.values(), ids=ODD_ANSWERS)
def test_an_odd_answer_ends_the_trial_with_a_class_a_sentence_and_a_remedy(
    owner_client: Client,
    catalogue: None,
    scripting: StartScriptedServer,
    answer: ScriptedReply,
    failure_class: str,
    words: str,
) -> None:
    trial = tried(scripting, lambda seen: answer)

    page = shown(owner_client, f"/trials/{trial.pk}/")
    assert trial.failure_class == failure_class
    assert trial.sentence
    assert words in page
    assert "What helps" in page
    assert shown(owner_client, f"/trials/{trial.pk}/?step=0.response").count('class="code"') >= 2
    assert failure_class in shown(owner_client, f"/runs/{trial.run_id}/")


def test_a_hundred_thousand_brackets_as_arguments_are_the_models_failure(
    owner_client: Client, catalogue: None, scripting: StartScriptedServer
) -> None:
    function = {"name": "state_get", "arguments": "[" * 100_000}
    message = {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
    trial = tried(scripting, lambda seen: chat_reply(message, finish_reason="tool_calls"))

    assert trial.outcome == "fail"
    for query in ("", "?step=0.response", "?step=0.calls", "?step=1.dispatch", "?step=1.result"):
        assert len(shown(owner_client, f"/trials/{trial.pk}/{query}")) < 2_000_000


@pytest.mark.parametrize("text", ["a\x00b", "\ud800 alone \udfff", "\x1b[31m\u202e\u0000", "\ufeff\ufffe"])
def test_characters_that_databases_refuse_are_stored_and_shown(
    owner_client: Client, catalogue: None, scripting: StartScriptedServer, text: str
) -> None:
    function = {"name": f"state_get{text}", "arguments": json.dumps({"workspace_id": text})}
    message = {"content": text, "tool_calls": [{"id": text, "type": "function", "function": function}]}
    trial = tried(scripting, lambda seen: chat_reply(message, finish_reason=text, model=text, system_fingerprint=text))

    for step in ("0.request", "0.response", "0.transforms", "0.calls", "1.dispatch", "1.result"):
        assert "\x00" not in shown(owner_client, f"/trials/{trial.pk}/?step={step}")
    for path in (f"/trials/{trial.pk}/", f"/runs/{trial.run_id}/", f"/trials/?run={trial.run_id}"):
        assert "\x00" not in shown(owner_client, path)


def test_an_answer_of_ten_megabytes_is_shown_by_its_beginning(
    owner_client: Client, catalogue: None, scripting: StartScriptedServer
) -> None:
    trial = tried(scripting, lambda seen: text_reply("lorem ipsum " * 850_000), scenario="chat_only")

    page = shown(owner_client, f"/trials/{trial.pk}/?step=0.response")
    assert trial.outcome == "fail"
    assert trial.steps.get().response_bytes > 10_000_000
    assert len(page) < 2_000_000
    assert "Only the beginning is shown" in page


def test_two_runs_on_one_provider_at_once_both_end(
    owner_client: Client, catalogue: None, scripting: StartScriptedServer
) -> None:
    model = make_scripted_model(scripting(answer_correctly), concurrency=3)
    runs = [launch_run(model, trials=5), launch_run(model, trials=5)]

    assert run_worker_session(model) == 10

    for run in runs:
        assert "5 of 5" in shown(owner_client, f"/runs/{run.pk}/")
        assert set(run.trials.values_list("outcome", flat=True)) == {"pass"}


def test_a_deleted_provider_harms_neither_its_finished_nor_its_queued_runs(
    owner_client: Client, catalogue: None, scripting: StartScriptedServer
) -> None:
    model = make_scripted_model(scripting(answer_correctly))
    finished = launch_run(model, trials=2)
    run_worker_session(model)
    queued = launch_run(model, trials=2)

    asked = shown(owner_client, f"/providers/{model.provider_id}/delete/")
    answer = owner_client.post(f"/providers/{model.provider_id}/delete/", follow=True)

    assert "2 runs" in asked
    assert "Its runs and trials are kept" in read_html(answer)
    assert "2 of 2" in shown(owner_client, f"/runs/{finished.pk}/")
    page = shown(owner_client, f"/runs/{queued.pk}/")
    assert "The provider was deleted before this trial began" in page
    for run in (finished, queued):
        for trial in run.trials.all():
            shown(owner_client, f"/trials/{trial.pk}/")
        shown(owner_client, f"/matrix/?run={run.pk}")
        shown(owner_client, f"/latency/?run={run.pk}")
        shown(owner_client, f"/policy/?config={run.configs.get().pk}")
    assert {run.state for run in Run.objects.all()} == {Run.State.FINISHED}
    for action in ("repeat", "retry", "add"):
        form = {"action": action, "cell": queued.cells.get().pk, "count": 1}
        answer = owner_client.post(f"/runs/{queued.pk}/act/", form, follow=True)
        assert answer.status_code == 200
        assert "deleted" in read_html(answer) or "no errored trial" in read_html(answer)


def test_a_model_that_went_away_is_refused_before_anything_is_sent(
    owner_client: Client, catalogue: None, scripting: StartScriptedServer
) -> None:
    provider = scripting(answer_correctly)
    model = make_scripted_model(provider)
    connect.delete_provider(model.provider_id)

    answer = owner_client.post("/runs/new/", PLANNED | {"models": model.pk, "scenarios": "happy_path"})

    assert "not one of the available choices" in read_html(answer)
    assert not Run.objects.exists()
    assert provider.seen == []


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (error_reply(401, "Incorrect API key provided"), "Incorrect API key provided"),
        (ScriptedReply(200, {"content-type": "text/html"}, b"<html>"), "Not an answer"),
        (ScriptedReply(302, {"location": "/login"}), "Redirect to /login refused"),
        (json_reply({"data": "none"}), "unknown shape"),
        (json_reply({"data": [1, None, {"id": 7}, {"id": "a\x00b"}]}), "a"),
        (ScriptedReply(200, JSON_TYPE, b"[" * 100_000), "Not an answer"),
    ],
)
def test_a_list_of_models_that_is_none_says_why_and_what_to_do(
    owner_client: Client, catalogue: None, scripting: StartScriptedServer, answer: ScriptedReply, sentence: str
) -> None:
    model = make_scripted_model(scripting(lambda seen: answer))

    owner_client.post(f"/providers/{model.provider_id}/models/", {"ask": "1"})
    page = shown(owner_client, f"/providers/{model.provider_id}/models/")

    assert sentence in page
    assert "Or by name, one a line" in page
