"""The Python client against the real application on a real server."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_step, make_trial
from toolbench.client import (
    AuthenticationFailedError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    ToolbenchClient,
    ToolbenchError,
    TooManyRequestsError,
    UnreachableError,
)
from toolbench.client.connection import MAX_FAILING_SECONDS, PAGE_SIZE, POLL_SECONDS
from toolbench.lab.accounts.sign_in import get_first_owner
from toolbench.lab.accounts.tokens import Scope, create_api_token
from toolbench.lab.models import Model, Run, Trial
from toolbench.lab.results.run import page
from toolbench.providers.scripted_server import ScriptedReply, ScriptedServer, json_reply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner_user(transactional_db: None) -> User:
    """Return the owner, stored so that the server's connection sees it."""
    return get_first_owner()


@pytest.fixture
def client_of_owner(live_server: LiveServer, owner_user: User) -> Iterator[ToolbenchClient]:
    """Return a client with a token of the owner."""
    secret = create_api_token(owner_user, "tests", Scope.values, None)[1]
    with ToolbenchClient(live_server.url, secret) as found:
        yield found


@pytest.fixture
def model(transactional_db: None) -> Model:
    """Make a simulated model, which has no cost."""
    return make_model(provider=make_provider("Mine", kind="simulated", service="simulated"))


def test_client_plans_launches_once_reads_and_cancels_a_run(client_of_owner: ToolbenchClient, model: Model) -> None:
    plan: dict[str, Any] = {"models": [model.pk], "scenarios": ["happy_path"], "trials": 2, "probe_unknown": False}
    assert client_of_owner.plan(**plan).trials == 2
    run = client_of_owner.launch(**plan, idempotency_key="once")
    assert client_of_owner.launch(**plan, idempotency_key="once").id == run.id
    with pytest.raises(ConflictError, match="was used for another request"):
        client_of_owner.launch(**plan | {"trials": 3}, idempotency_key="once")
    assert client_of_owner.pause(run.id).state == "paused"
    assert client_of_owner.wait_for_run(run.id).run.state == "paused"
    assert client_of_owner.resume(run.id).state == "running"
    assert client_of_owner.cancel(run.id).has_ended
    found = client_of_owner.wait_for_run(run.id)
    assert found.counts.cancelled == 2
    assert found.configs[0].cells[0].scenario == "happy_path"
    assert Run.objects.count() == 1


def test_client_repeats_and_adds_trials_once(client_of_owner: ToolbenchClient, model: Model) -> None:
    plan: dict[str, Any] = {"models": [model.pk], "scenarios": ["happy_path"], "trials": 2, "probe_unknown": False}
    run_id = client_of_owner.launch(**plan).id
    cell_id = client_of_owner.get_run(run_id).configs[0].cells[0].cell_id
    added = {client_of_owner.add_trials(run_id, cell_id, 3, idempotency_key="more") for _ in range(2)}
    assert added == {"3 trials added; they are marked as added manually."}
    repeats = {client_of_owner.repeat(run_id, kind="aa", idempotency_key="again").id for _ in range(2)}
    assert {run_id, *repeats} == set(Run.objects.values_list("pk", flat=True))
    assert Run.objects.get(pk=run_id).trial_count == 5


def test_client_iterators_request_later_pages(client_of_owner: ToolbenchClient) -> None:
    cell = make_cell(make_config(make_run()))
    expected = [make_trial(cell, "pass" if number % 2 else "fail") for number in range(PAGE_SIZE + 5)]
    trials = list(client_of_owner.iter_trials(run=cell.run_id, sort="newest"))
    assert sorted(trial.id for trial in trials) == sorted(trial.pk for trial in expected)
    assert [row.run.id for row in client_of_owner.iter_runs()] == [cell.run_id]
    assert client_of_owner.get_matrix(scope="real")["table"]["rows"]
    assert client_of_owner.decide(scope="real")["sentence"]


def test_client_get_trial_and_get_bytes_return_exact_bytes(client_of_owner: ToolbenchClient) -> None:
    trial = make_trial(make_cell(make_config(make_run())), "fail")
    step = make_step(trial, bodies={"response": b"\xff\x00"})
    found = client_of_owner.get_trial(trial.pk)
    assert (found.trial.outcome, [row.id for row in found.steps]) == ("fail", [step.pk])
    assert client_of_owner.get_bytes(step.pk, "response") == b"\xff\x00"


def test_client_get_run_has_the_configurations_of_all_pages(
    client_of_owner: ToolbenchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "MAX_PAGE_ROWS", 1)
    run = make_run()
    for name in ("vendor/a", "vendor/b", "vendor/c"):
        make_cell(make_config(run, make_model(name)))
    assert [config.model for config in client_of_owner.get_run(run.pk).configs] == ["vendor/a", "vendor/b", "vendor/c"]


def test_client_wait_for_run_requests_later_pages_only_at_the_end(
    client_of_owner: ToolbenchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "MAX_PAGE_ROWS", 1)
    run = make_run(state=Run.State.RUNNING)
    for name in ("vendor/a", "vendor/b"):
        make_cell(make_config(run, make_model(name)))
    urls: list[str] = []
    client_of_owner.transport.http.event_hooks["request"] = [lambda request: urls.append(request.url.query.decode())]

    def pause(seconds: float) -> None:
        Run.objects.update(state=Run.State.PAUSED)

    client_of_owner.transport.wait = pause
    assert [config.model for config in client_of_owner.wait_for_run(run.pk).configs] == ["vendor/a", "vendor/b"]
    assert urls == ["", "", "page=2"]


@pytest.mark.parametrize("is_new", [True, False])
def test_client_wait_for_run_repeats_polls_that_fail(client_of_owner: ToolbenchClient, is_new: bool) -> None:
    run = make_run()
    waits: list[float] = []
    if not is_new:
        client_of_owner.get_run(run.pk)
    with ScriptedServer([ScriptedReply(503)] * 3) as server:
        good_url, client_of_owner.transport.http.base_url = client_of_owner.transport.http.base_url, server.base_url

        def wait(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                client_of_owner.transport.http.base_url = good_url

        client_of_owner.transport.wait = wait
        assert client_of_owner.wait_for_run(run.pk).run.id == run.pk
        assert waits == [POLL_SECONDS, 2 * POLL_SECONDS, 3 * POLL_SECONDS]


def test_client_wait_for_run_gives_up_after_two_minutes_of_failures() -> None:
    with ToolbenchClient("http://127.0.0.1:9", "tb_x") as client:
        seconds = let_time_pass(client, per_request=60)
        with pytest.raises(UnreachableError, match="did not answer"):
            client.wait_for_run(1)
    assert MAX_FAILING_SECONDS < sum(seconds) < MAX_FAILING_SECONDS + 60


def test_client_wait_for_run_without_any_answer_raises_at_once() -> None:
    waits: list[float] = []
    with ToolbenchClient("http://127.0.0.1:9", "tb_x") as client:
        client.transport.wait = waits.append
        with pytest.raises(UnreachableError, match="did not answer"):
            client.wait_for_run(1)
    assert waits == []


def test_client_wait_for_run_raises_error_of_dead_server_at_deadline() -> None:
    with ToolbenchClient("http://127.0.0.1:9", "tb_x") as client:
        let_time_pass(client, per_request=1)
        with pytest.raises(UnreachableError, match="did not answer"):
            client.wait_for_run(1, seconds=5)


def let_time_pass(client: ToolbenchClient, *, per_request: float) -> list[float]:
    """Replace the clock of a client that has had an answer; return the seconds that pass, to which it adds."""
    seconds: list[float] = []
    client.transport.has_answered = True
    client.transport.wait = seconds.append
    client.transport.clock = lambda: sum(seconds)
    client.transport.http.event_hooks["request"] = [lambda request: seconds.append(per_request)]
    return seconds


def test_client_get_run_rereads_a_changed_run(client_of_owner: ToolbenchClient) -> None:
    run = make_run()
    first = client_of_owner.get_run(run.pk)
    assert client_of_owner.get_run(run.pk) == first
    Run.objects.update(label="new")
    assert client_of_owner.get_run(run.pk).run.label == "new"


def test_client_raises_typed_errors_for_refusals(
    client_of_owner: ToolbenchClient, live_server: LiveServer, owner_user: User
) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        client_of_owner.launch(models=[999999], scenarios=["happy_path"])
    assert [error.field for error in raised.value.errors] == ["models"]
    with pytest.raises(NotFoundError, match="There is no run 999999"):
        client_of_owner.get_run(999999)
    with pytest.raises(ConflictError) as unconfirmed:
        client_of_owner.launch(models=[make_model().pk], scenarios=["happy_path"], trials=50)
    assert unconfirmed.value.agreed
    with ToolbenchClient(live_server.url, "wrong") as unauthorised_client, pytest.raises(AuthenticationFailedError):
        unauthorised_client.list_models()
    with (
        ToolbenchClient("http://127.0.0.1:9", "x") as unreachable_client,
        pytest.raises(UnreachableError, match="did not answer"),
    ):
        unreachable_client.list_models()


def test_client_waits_as_long_as_the_server_demands(client_of_owner: ToolbenchClient, settings: Settings) -> None:
    settings.API_READS_PER_MINUTE = 0
    waits: list[float] = []
    client_of_owner.transport.wait = waits.append
    with pytest.raises(TooManyRequestsError):
        client_of_owner.list_models()
    assert len(waits) == 3
    assert all(0 < seconds <= 60 for seconds in waits)


@pytest.mark.parametrize(
    "reply",
    [
        ScriptedReply(302, {"location": "/sign-in/"}),
        ScriptedReply(200, {}, b"<html>"),
        ScriptedReply(422, {}, b'{"errors": ["x"]}'),
        ScriptedReply(422, {}, b'{"errors": {"field": 1}}'),
    ],
)
def test_client_raises_toolbench_error_for_answers_of_another_server(reply: ScriptedReply) -> None:
    with ScriptedServer([reply] * 3) as server, ToolbenchClient(server.base_url, "tb_x") as client:
        for send in (lambda: client.get_run(1), lambda: client.pause(1), lambda: client.launch(models=[1])):
            with pytest.raises(ToolbenchError):
                send()


def test_client_request_sends_body_by_position_or_name() -> None:
    with ScriptedServer([json_reply({})] * 2) as server, ToolbenchClient(server.base_url, "tb_x") as client:
        client.request("POST", "/runs/12/limits", {"jobs": 2})
        client.request("POST", "/runs/12/limits", body={"jobs": 2})
        assert [(seen.path, seen.json()) for seen in server.seen] == [("/api/v1/runs/12/limits", {"jobs": 2})] * 2


@pytest.mark.parametrize("body", [b"{}", b"[]"])
def test_client_get_run_without_required_fields_raises_value_error(body: bytes) -> None:
    with (
        ScriptedServer([ScriptedReply(200, {}, body)]) as server,
        ToolbenchClient(server.base_url, "tb_x") as client,
        pytest.raises(ValueError, match="RemoteRunDetail"),
    ):
        client.get_run(1)


@pytest.mark.parametrize("body", [{}, {"items": None, "next": None}])
def test_client_iter_runs_without_a_list_raises_value_error(body: dict[str, Any]) -> None:
    with (
        ScriptedServer([json_reply(body)]) as server,
        ToolbenchClient(server.base_url, "tb_x") as client,
        pytest.raises(ValueError, match="versions of client and server"),
    ):
        next(client.iter_runs())


def test_client_add_trials_without_a_sentence_raises_value_error() -> None:
    with (
        ScriptedServer([json_reply({})]) as server,
        ToolbenchClient(server.base_url, "tb_x") as client,
        pytest.raises(ValueError, match="lacks sentence"),
    ):
        client.add_trials(1, 2, 3)


def test_client_with_an_invalid_url_raises_unreachable() -> None:
    with pytest.raises(UnreachableError, match="is not a URL"):
        ToolbenchClient("http://a:port", "tb_x")


def test_client_starts_a_conversation_once_and_reads_it(client_of_owner: ToolbenchClient, model: Model) -> None:
    sent = client_of_owner.start_conversation("Hello.", model=model.pk, trials=2, idempotency_key="once")
    assert client_of_owner.start_conversation("Hello.", model=model.pk, trials=2, idempotency_key="once") == sent
    found = client_of_owner.get_conversation(sent.conversation)
    assert [trial.id for trial in found.trials] == sent.trials
    assert (found.waiting, found.messages, found.history) == (True, 1, None)
    with pytest.raises(ConflictError, match="no answer"):
        client_of_owner.send_message(sent.conversation, "And now?", trial=sent.trials[0])


def test_client_saves_and_runs_an_answer_as_a_case(client_of_owner: ToolbenchClient, model: Model) -> None:
    sent = client_of_owner.start_conversation("Hello.", model=model.pk)
    trial_id = sent.trials[0]
    Trial.objects.filter(pk=trial_id).update(state="done", outcome="pass", finished_at=timezone.now())
    case = client_of_owner.save_as_case(sent.conversation, trial_id)
    assert client_of_owner.save_as_case(sent.conversation, trial_id) == case
    run = client_of_owner.run_as_case(sent.conversation, trial_id, trials=2, idempotency_key="twice")
    assert client_of_owner.run_as_case(sent.conversation, trial_id, trials=2, idempotency_key="twice").id == run.id
    assert run.trial_count == 2
    assert client_of_owner.send_message(sent.conversation, "And now?").message == 2
