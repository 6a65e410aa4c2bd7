"""Playground: a conversation is a draft case, each message a run of it; results omit these runs."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from tests.lab.cases.weather_conversations import TOOL, model, server
from tests.lab.conftest import RunInThread, elsewhere
from tests.lab.scripted_runs import launch_run, make_paid_model, run_worker_session
from tests.page_html import read_html
from tests.web.test_launch_keys import read_key
from toolbench.lab.accounts.roles import Role, set_role
from toolbench.lab.maintenance import sweep
from toolbench.lab.metrics.cause_pools import CauseScope, sum_causes
from toolbench.lab.metrics.pools import refresh_pools, sum_all_runs
from toolbench.lab.metrics.result_filter import NO_FILTER
from toolbench.lab.models import AuditEntry, Case, CellPool, Model, Provider, Run, Trial
from toolbench.lab.results.run.index import get_run_list
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials
from toolbench.lab.runs.action_checks import RunActionError
from toolbench.lab.runs.control import start_noise_repeat, start_repeat
from toolbench.lab.runs.repeat import resend_trial
from toolbench.lab.schedules.edit import ScheduleError, ScheduleSettings, create_schedule
from toolbench.providers.scripted_server import ScriptedServer

__all__ = ["elsewhere", "model", "server"]  # fixtures
pytestmark = pytest.mark.django_db(transaction=True)

MESSAGE = {
    "message": "How is the weather in Berlin?",
    "tools": json.dumps([TOOL]),
    "results": '{"get_weather": {"fixed": {"sky": "clear"}}}',
}
SendMessage = Callable[..., str]
SETTINGS = {"profile": "default", "strategy": "production", "method": "native", "trials": "1"}


@pytest.fixture
def send(owner_client: Client, model: Model) -> SendMessage:
    """Send a message in a new conversation, have it answered, and return the address of the conversation."""

    def start(**fields: str) -> str:
        response = owner_client.post("/playground/", MESSAGE | SETTINGS | {"model": str(model.pk)} | fields)
        assert response.status_code == 302, response.context["form"].errors
        run_worker_session(model)
        return response.headers["Location"]

    return start


def read_fields(response: Any) -> dict[str, str]:
    """Return the values of the forms of a page, as a browser sends them."""
    forms = [response.context[name] for name in ("form", "run_form")]
    shown = {name: form[name].value() for form in forms for name in form.fields} | {"key": read_key(response)}
    return {name: str(value) for name, value in shown.items() if value not in (None, "", False)}


def send_next_message(client: Client, address: str, message: str, **fields: str) -> str:
    """Send the form that a conversation shows, with another message, and return the address that follows."""
    response = client.post(address, read_fields(client.get(address)) | {"message": message} | fields)
    assert response.status_code == 302, response.context["form"].errors
    return response.headers["Location"]


def test_playground_message_starts_run_of_draft_case(owner_client: Client, send: SendMessage) -> None:
    page = read_html(owner_client.get(send()))
    assert "The user&#x27;s next message, after the answer above." in page
    assert "get_weather" in page
    assert "3 messages." in page
    trial = Trial.objects.get()
    assert (trial.outcome, trial.run.purpose) == ("pass", "playground")
    assert trial.run.title == f"Playground: {MESSAGE['message']}"
    assert Case.objects.get().set.kind == "draft"
    trial_page = read_html(owner_client.get(f"/trials/{trial.pk}/"))
    assert "leave out this trial and its run unless you choose the run." in trial_page
    assert "leave this run out unless you choose it." in read_html(owner_client.get(f"/runs/{trial.run_id}/"))
    assert {entry.action for entry in AuditEntry.objects.all()} == {"added", "launched"}


def test_playground_next_message_follows_answer(
    owner_client: Client, model: Model, server: ScriptedServer, send: SendMessage
) -> None:
    address = send_next_message(owner_client, send(system="Be short."), "And in Rome?")
    run_worker_session(model)
    sent = server.seen[-1].json()["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert sent[2]["tool_calls"][0]["id"] == sent[3]["tool_call_id"]
    assert json.loads(sent[3]["content"])["data"] == {"sky": "clear"}
    assert [message["content"] for message in (sent[0], *sent[4:])] == ["Be short.", "4 messages.", "And in Rome?"]
    assert "6 messages." in read_html(owner_client.get(address))
    assert Case.objects.get().current == 2


def test_playground_form_continues_state_after_calls(owner_client: Client, send: SendMessage) -> None:
    results = '{"get_weather": {"fixed": {"sky": "clear"}, "set": {"/asked/{city}": true}}}'
    form = owner_client.get(send(results=results)).context["form"]
    assert json.loads(form["start"].value()) == {"asked": {"Berlin": True}}
    assert form["message"].value() == ""


def test_playground_message_without_tools_is_answered(
    owner_client: Client, server: ScriptedServer, send: SendMessage
) -> None:
    send(tools="", results="", message="Hello.")
    assert "tools" not in server.seen[-1].json()
    assert Trial.objects.get().end == "FINAL"


def test_playground_form_offers_unanswered_message_again(owner_client: Client, model: Model, send: SendMessage) -> None:
    address = send()
    Model.objects.update(name="gone")
    Provider.objects.update(base_url="http://127.0.0.1:9/v1")
    again = send_next_message(owner_client, address, "And in Rome?")
    run_worker_session(model)
    form = owner_client.get(again).context["form"]
    assert Trial.objects.latest("pk").outcome == "infra"
    assert form["message"].value() == "And in Rome?"
    send_next_message(owner_client, again, "And in Paris?")
    newest = Case.objects.get().versions.get(number=3).definition
    assert "And in Rome?" not in newest
    assert "And in Paris?" in newest


def test_playground_form_explains_bad_input_and_saves_nothing(owner_client: Client, model: Model) -> None:
    sent = MESSAGE | SETTINGS | {"model": str(model.pk)}
    response = owner_client.post("/playground/", sent | {"tools": '[{"name": }]', "trials": "21"})
    page = read_html(response)
    assert response.status_code == 422
    assert "Line 1, column 11: this is not JSON" in page
    assert "less than or equal to 20" in page
    assert not Case.objects.exists()
    assert not Run.objects.exists()


def test_playground_refuses_trial_of_other_conversation(owner_client: Client, model: Model, send: SendMessage) -> None:
    first, second = send(), send()
    other_trial_id = str(Trial.objects.earliest("pk").pk)
    sent = MESSAGE | SETTINGS | {"model": str(model.pk), "trial": other_trial_id}
    response = owner_client.post(second, sent)
    assert response.status_code == 422
    assert f"This conversation has no trial {other_trial_id}." in read_html(response)
    assert owner_client.get(f"{second}{other_trial_id}/").status_code == 404
    assert owner_client.get(f"{first}{other_trial_id}/").status_code == 200


def test_playground_sends_paid_requests_only_after_confirmation(owner_client: Client, server: ScriptedServer) -> None:
    paid = make_paid_model(server, "paid")
    sent = MESSAGE | SETTINGS | {"model": str(paid.pk), "trials": "20", "turns": "50"}
    address = owner_client.post("/playground/", sent).headers["Location"]
    response = owner_client.get(address)
    assert "These requests may cost money." in read_html(response)
    assert not Run.objects.exists()
    agreed = str(response.context["launch_result"].plan.max_paid_requests)
    path, fields = address.partition("?")[0], read_fields(response)
    for _ in range(2):
        assert owner_client.post(path, fields | {"agreed": agreed}).headers["Location"] == path
    assert Trial.objects.count() == 20
    assert Case.objects.get().current == 1


def test_playground_send_pressed_repeatedly_starts_one_run(
    owner_client: Client, model: Model, elsewhere: RunInThread
) -> None:
    page = owner_client.get("/playground/")
    sent = read_fields(page) | MESSAGE | SETTINGS | {"model": str(model.pk)}
    presses = [elsewhere(owner_client.post, "/playground/", sent) for _ in range(4)]
    addresses = {press.result(timeout=30).headers["Location"] for press in presses}
    assert addresses == {f"/playground/{Case.objects.get().slug}/"}
    assert Run.objects.count() == 1
    assert read_fields(owner_client.get("/playground/"))["key"] != sent["key"]


def test_playground_send_twice_before_confirmation_saves_one_draft(
    owner_client: Client, server: ScriptedServer
) -> None:
    paid = make_paid_model(server, "paid")
    page = owner_client.get("/playground/")
    sent = read_fields(page) | MESSAGE | SETTINGS | {"model": str(paid.pk), "trials": "20", "turns": "50"}
    addresses = {owner_client.post("/playground/", sent).headers["Location"] for _ in range(2)}
    assert len(addresses) == Case.objects.count() == 1
    assert not Run.objects.exists()


def test_playground_refuses_form_key_of_other_message(owner_client: Client, model: Model) -> None:
    sent = read_fields(owner_client.get("/playground/")) | MESSAGE | SETTINGS | {"model": str(model.pk)}
    owner_client.post("/playground/", sent)
    refused = owner_client.post("/playground/", sent | {"message": "How is the weather in Rome?"})
    assert refused.status_code == 422
    assert "this form was sent before with other content" in read_html(refused)
    assert Run.objects.count() == 1
    fields = read_fields(refused)
    assert fields["message"] == "How is the weather in Rome?"
    assert owner_client.post("/playground/", fields).status_code == 302
    assert Run.objects.count() == 2


def test_playground_run_button_pressed_twice_starts_one_run(owner_client: Client, send: SendMessage) -> None:
    address = send()
    trial = Trial.objects.get()
    form = owner_client.get(address).context["trials_form"]
    sent = {"trials": str(form["trials"].value()), "key": read_key(owner_client.get(address))}
    run_addresses = {owner_client.post(f"{address}{trial.pk}/run/", sent).headers["Location"] for _ in range(2)}
    run = Run.objects.exclude(purpose="playground").get()
    assert run_addresses == {f"/runs/{run.pk}/"}
    run.deleted_at = timezone.now()
    run.save(update_fields=["deleted_at"])
    refused = owner_client.post(f"{address}{trial.pk}/run/", sent, follow=True)
    assert "its run was deleted" in read_html(refused)


def test_playground_form_opens_section_of_invalid_expectation(owner_client: Client, model: Model) -> None:
    assert "<details open>" not in read_html(owner_client.get("/playground/"))
    sent = MESSAGE | SETTINGS | {"model": str(model.pk), "results": "", "expect": "{"}
    assert "<details open>" in read_html(owner_client.post("/playground/", sent))


def test_results_omit_runs_of_playground(owner_client: Client, model: Model, send: SendMessage) -> None:
    send()
    launch_run(model)
    run_worker_session(model)
    playground, run = Run.objects.filter(purpose="playground").get(), Run.objects.exclude(purpose="playground").get()
    for refreshed in (False, True):
        if refreshed:
            sweep()
            refresh_pools()
        counted = sum_all_runs(NO_FILTER, simulated=False, imported=False)
        assert {pk for row in counted.rows for pk in row["run_ids"]} == {run.pk}
        causes = sum_causes(CauseScope(NO_FILTER))
        assert sum(line.count for line in causes.lines) == run.trials.count()
    assert set(Run.objects.values_list("pooled", flat=True)) == {True}
    assert {pk for run_ids in CellPool.objects.values_list("run_ids", flat=True) for pk in run_ids} == {run.pk}
    trial_ids = {row.id for row in get_trials(TrialFilter()).rows}
    assert trial_ids == set(run.trials.values_list("pk", flat=True))
    assert [row.run.pk for row in get_run_list("own").rows] == [run.pk]
    named = {row.id for row in get_trials(TrialFilter(run=playground.pk)).rows}
    assert named == set(playground.trials.values_list("pk", flat=True))


def test_repeats_of_playground_run_belong_to_playground(send: SendMessage, model: Model) -> None:
    send()
    run = Run.objects.get()
    assert start_repeat(run.pk, owner=None).purpose == "playground"
    assert resend_trial(run.trials.get().pk).purpose == "playground"
    with pytest.raises(RunActionError, match="Results leave out runs of the playground"):
        start_noise_repeat(run.pk, owner=None)
    with pytest.raises(ScheduleError, match="Trends leave out runs of the playground"):
        create_schedule(run, ScheduleSettings("Nightly", None, 2, 100, 3000), owner=None)


def test_playground_drafts_are_in_no_list_of_cases(owner_client: Client, send: SendMessage) -> None:
    send()
    slug = Case.objects.get().slug
    for address in ("/cases/", "/runs/new/", "/cases/export.jsonl?private=1"):
        assert slug not in owner_client.get(address).content.decode()
    assert owner_client.get(f"/cases/{slug}/").headers["Location"] == f"/playground/{slug}/"
    assert owner_client.get(f"/cases/{slug}/edit/").status_code == 404


def test_playground_run_button_saves_case_and_runs_it_20_times(owner_client: Client, send: SendMessage) -> None:
    address = send(profile="default", strategy="baseline")
    trial = Trial.objects.get()
    form = owner_client.get(f"/cases/new/?trial={trial.pk}").context["form"]
    assert json.loads(form["expect"].value()) == {"name": "get_weather", "arguments": {"city": "Berlin"}}
    response = owner_client.post(f"{address}{trial.pk}/run/", {"trials": "20"})
    run = Run.objects.latest("pk")
    assert response.headers["Location"] == f"/runs/{run.pk}/"
    assert (run.purpose, run.trial_count, run.configs.get().strategy) == ("", 20, "baseline")
    case = Case.objects.get(from_trial=trial)
    assert (case.set.kind, case.set.name) == ("own", "My cases")
    owner_client.post(f"{address}{trial.pk}/run/", {"trials": "3"})
    assert Case.objects.filter(from_trial=trial).count() == 1
    assert AuditEntry.objects.filter(subject=f"test case {case.slug}").count() == 1


def test_playground_shows_no_form_after_removed_answer(owner_client: Client, send: SendMessage) -> None:
    address = send()
    Trial.objects.update(bodies_removed_at=timezone.now(), bodies_rule="After 1 day")
    shown = read_html(owner_client.get(address))
    trial = Trial.objects.get()
    assert f"cannot go on after trial {trial.pk}: its answer was removed by the rule “After 1 day”." in shown
    assert f'href="/playground/?trial={trial.pk}">Start a new conversation</a>' in shown
    assert 'name="message"' not in shown


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"outcome": "infra"}, "neither passed nor failed"),
        ({"outcome": "cancelled"}, "neither passed nor failed"),
        ({"bodies_removed_at": timezone.now(), "bodies_rule": "After 1 day"}, "removed by the rule “After 1 day”"),
        ({"state": "running", "outcome": ""}, "has not ended"),
    ],
)
def test_playground_saves_no_case_of_trial_without_answer(
    owner_client: Client, send: SendMessage, changes: dict[str, Any], sentence: str
) -> None:
    address = send()
    trial = Trial.objects.get()
    Trial.objects.update(**changes)
    pressed = owner_client.post(f"{address}{trial.pk}/run/", {"trials": "20"}, follow=True)
    assert pressed.redirect_chain == [(f"{address}{trial.pk}/", 302)]
    assert sentence in read_html(pressed)
    assert "Correct the test case" not in read_html(pressed)
    assert "Save as test case" not in read_html(pressed)
    form = owner_client.get(f"/cases/new/?trial={trial.pk}")
    assert (form.status_code, sentence in read_html(form)) == (404, True)
    assert Case.objects.count() == Run.objects.count() == 1
    assert owner_client.get(f"/playground/?trial={trial.pk}").status_code == 200


def test_playground_edits_trial_and_sends_it_five_times(owner_client: Client, model: Model) -> None:
    launch_run(model, scenarios=("happy_path",), strategies=("raw",), trials=1, tool_failure_policy="fatal")
    run_worker_session(model)
    trial = Trial.objects.get()
    response = owner_client.get(f"/playground/?trial={trial.pk}")
    fields = read_fields(response)
    assert (fields["trials"], fields["strategy"]) == ("5", "raw")
    owner_client.post(f"/playground/?trial={trial.pk}", fields | {"message": "Set foo to bar now."})
    run_worker_session(model)
    run = Run.objects.latest("pk")
    assert (run.purpose, run.trials.count(), run.request["tool_failure_policy"]) == ("playground", 5, "fatal")
    assert Case.objects.get().versions.get().definition.count("Set foo to bar now.") == 1
    page = owner_client.get(f"/playground/{Case.objects.get().slug}/")
    assert len(page.context["page"].trials) == 5


def test_playground_sends_examples_of_trial_as_messages(
    owner_client: Client, model: Model, server: ScriptedServer
) -> None:
    launch_run(model, scenarios=("weather",), examples=("weather-1",), trials=1)
    run_worker_session(model)
    first = server.seen[0].json()["messages"]
    page = owner_client.get(f"/playground/?trial={Trial.objects.get().pk}")
    answer = owner_client.post("/playground/", read_fields(page) | {"trials": "1"})
    assert answer.status_code == 302
    del server.seen[:]
    run_worker_session(model)
    assert server.seen[0].json()["messages"] == first


def test_playground_form_takes_tools_of_case(owner_client: Client, model: Model) -> None:
    sent = MESSAGE | {"expect": '{"name": "get_weather", "arguments": {}}', "save": "1"}
    owner_client.post("/cases/new/", sent)
    form = owner_client.get(f"/playground/?case={Case.objects.get().slug}").context["form"]
    assert "get_weather" in form["tools"].value()
    assert owner_client.get("/playground/?case=happy_path").status_code == 404
    assert owner_client.get("/playground/?trial=99999").status_code == 404


def test_playground_viewer_reads_and_cannot_send(client: Client, send: SendMessage) -> None:
    address = send()
    user = User(username="viewer")
    set_role(user, Role.VIEWER)
    user.save()
    client.force_login(user)
    for page in ("/playground/", address):
        assert client.get(page).status_code == 200
        assert client.post(page).status_code == 403
    assert "Next message" not in client.get(address).content.decode()
