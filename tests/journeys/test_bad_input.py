"""Invalid input of people and invalid answers of providers: a clear message, no lost entry, no server error."""

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
STATUS_OF_INVALID_FORM = {"/providers/new/": 422, "/runs/new/": 200}
PLANNED = {"profiles": "default", "strategies": "production", "methods": "native", "trials": "1"}
PLANNED |= {"instance_kind": "parity", "tool_use_mode": "enforced", "tool_failure_policy": "fatal"}

# Answers of a provider, the failure class that each leads to, and words of the trial's sentence.
INVALID_ANSWERS: dict[str, tuple[ScriptedReply, str, str]] = {
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
# Actions on a run whose provider was deleted, each with its message.
REFUSED_ACTIONS = {
    "repeat": "The run cannot be repeated: the provider scripted was deleted.",
    "retry": "has no trial with an infrastructure error to retry.",
    "add": "The provider scripted was deleted, so nothing can be added.",
}


def read_page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return read_html(answer)


def run_trial(
    start_server: StartScriptedServer, reply: Callable[[ReceivedRequest], ScriptedReply], scenario: str = "happy_path"
) -> Trial:
    """Run one trial to its end at a provider that answers with `reply`."""
    model = make_scripted_model(start_server(reply), max_attempts=1)
    run = launch_run(model, scenarios=(scenario,), trials=1)
    assert run_worker_session(model) == 1
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    return run.trials.get()


@pytest.mark.parametrize(("path", "field"), JSON_FIELDS, ids=[field for _, field in JSON_FIELDS])
@pytest.mark.parametrize(("text", "sentence"), NOT_JSON.values(), ids=NOT_JSON)
def test_form_with_invalid_json_shows_error_and_keeps_entries(
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
    assert answer.status_code == STATUS_OF_INVALID_FORM[path]
    assert sentence in page
    assert "Kept" in page
    assert (Run.objects.count(), Model.objects.count()) == before


@pytest.mark.parametrize(("answer", "failure_class", "words"), INVALID_ANSWERS.values(), ids=INVALID_ANSWERS)
def test_trial_page_of_invalid_answer_shows_class_and_suggested_fix(
    owner_client: Client,
    catalogue: None,
    start_server: StartScriptedServer,
    answer: ScriptedReply,
    failure_class: str,
    words: str,
) -> None:
    trial = run_trial(start_server, lambda seen: answer)

    page = read_page(owner_client, f"/trials/{trial.pk}/")
    assert trial.failure_class == failure_class
    assert trial.sentence
    assert words in page
    assert "What helps" in page
    assert read_page(owner_client, f"/trials/{trial.pk}/?step=0.response").count('class="code"') >= 2
    assert failure_class in read_page(owner_client, f"/runs/{trial.run_id}/")


def test_trial_with_100000_brackets_as_arguments_fails(
    owner_client: Client, catalogue: None, start_server: StartScriptedServer
) -> None:
    function = {"name": "state_get", "arguments": "[" * 100_000}
    message = {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
    trial = run_trial(start_server, lambda seen: chat_reply(message, finish_reason="tool_calls"))

    assert trial.outcome == "fail"
    for query in ("", "?step=0.response", "?step=0.calls", "?step=1.dispatch", "?step=1.result"):
        assert len(read_page(owner_client, f"/trials/{trial.pk}/{query}")) < 2_000_000


@pytest.mark.parametrize("text", ["a\x00b", "\ud800 alone \udfff", "\x1b[31m\u202e\u0000", "\ufeff\ufffe"])
def test_trial_pages_show_characters_that_postgresql_refuses(
    owner_client: Client, catalogue: None, start_server: StartScriptedServer, text: str
) -> None:
    function = {"name": f"state_get{text}", "arguments": json.dumps({"workspace_id": text})}
    message = {"content": text, "tool_calls": [{"id": text, "type": "function", "function": function}]}
    trial = run_trial(
        start_server, lambda seen: chat_reply(message, finish_reason=text, model=text, system_fingerprint=text)
    )

    for step in ("0.request", "0.response", "0.transforms", "0.calls", "1.dispatch", "1.result"):
        assert "\x00" not in read_page(owner_client, f"/trials/{trial.pk}/?step={step}")
    for path in (f"/trials/{trial.pk}/", f"/runs/{trial.run_id}/", f"/trials/?run={trial.run_id}"):
        assert "\x00" not in read_page(owner_client, path)


def test_trial_page_truncates_answer_of_ten_megabytes(
    owner_client: Client, catalogue: None, start_server: StartScriptedServer
) -> None:
    trial = run_trial(start_server, lambda seen: text_reply("lorem ipsum " * 850_000), scenario="chat_only")

    page = read_page(owner_client, f"/trials/{trial.pk}/?step=0.response")
    assert trial.outcome == "fail"
    assert trial.steps.get().response_bytes > 10_000_000
    assert len(page) < 2_000_000
    assert "Only the beginning is shown" in page


def test_worker_session_finishes_two_runs_of_one_provider(
    owner_client: Client, catalogue: None, start_server: StartScriptedServer
) -> None:
    model = make_scripted_model(start_server(answer_correctly), concurrency=3)
    runs = [launch_run(model, trials=5), launch_run(model, trials=5)]

    assert run_worker_session(model) == 10

    for run in runs:
        assert "5 of 5" in read_page(owner_client, f"/runs/{run.pk}/")
        assert set(run.trials.values_list("outcome", flat=True)) == {"pass"}


def test_deleted_provider_keeps_runs_readable_and_ends_queued_trials(
    owner_client: Client, catalogue: None, start_server: StartScriptedServer
) -> None:
    model = make_scripted_model(start_server(answer_correctly))
    finished = launch_run(model, trials=2)
    run_worker_session(model)
    queued = launch_run(model, trials=2)

    confirmation = read_page(owner_client, f"/providers/{model.provider_id}/delete/")
    answer = owner_client.post(f"/providers/{model.provider_id}/delete/", follow=True)

    assert "2 runs" in confirmation
    assert "Its runs and trials are kept" in read_html(answer)
    assert "2 of 2" in read_page(owner_client, f"/runs/{finished.pk}/")
    page = read_page(owner_client, f"/runs/{queued.pk}/")
    assert "The provider was deleted before this trial began" in page
    for run in (finished, queued):
        for trial in run.trials.all():
            read_page(owner_client, f"/trials/{trial.pk}/")
        read_page(owner_client, f"/matrix/?run={run.pk}")
        read_page(owner_client, f"/latency/?run={run.pk}")
        read_page(owner_client, f"/policy/?config={run.configs.get().pk}")
    assert {run.state for run in Run.objects.all()} == {Run.State.FINISHED}
    for action, sentence in REFUSED_ACTIONS.items():
        form = {"action": action, "cell": queued.cells.get().pk, "count": 1}
        answer = owner_client.post(f"/runs/{queued.pk}/act/", form, follow=True)
        assert answer.status_code == 200
        assert sentence in read_html(answer), action


def test_launch_form_refuses_model_of_deleted_provider(
    owner_client: Client, catalogue: None, start_server: StartScriptedServer
) -> None:
    provider = start_server(answer_correctly)
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
        (ScriptedReply(200, {"content-type": "text/html"}, b"<html>"), "The body is not an answer"),
        (ScriptedReply(302, {"location": "/login"}), "The server redirects to /login."),
        (json_reply({"data": "none"}), "unknown shape"),
        (json_reply({"data": [1, None, {"id": 7}, {"id": "a\x00b"}, {"id": "m"}]}), "1 in its own list"),
        (ScriptedReply(200, JSON_TYPE, b"[" * 100_000), "The body is not an answer"),
    ],
)
def test_models_page_explains_invalid_model_list(
    owner_client: Client, catalogue: None, start_server: StartScriptedServer, answer: ScriptedReply, sentence: str
) -> None:
    model = make_scripted_model(start_server(lambda seen: answer))

    owner_client.post(f"/providers/{model.provider_id}/models/", {"ask": "1"})
    page = read_page(owner_client, f"/providers/{model.provider_id}/models/")

    assert sentence in page
    assert "Or enter model names, one per line" in page
