import threading
import time
from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.conf import settings
from django.db.models import F

from tests.lab.conftest import RunInThread
from tests.lab.scripted_runs import (
    answer_correctly,
    answer_on_release,
    build_session_options,
    delay_answers,
    launch_run,
    make_scripted_model,
    read_counters,
    run_worker_session,
)
from toolbench.evals import scenarios
from toolbench.lab.credentials.keys import encrypt
from toolbench.lab.endpoints import connect
from toolbench.lab.maintenance import sweep
from toolbench.lab.metrics.cells import mark_stale, recompute_stale
from toolbench.lab.models import Cell, Model, Provider, Run, ServiceAddress, Step, Trial
from toolbench.lab.runs import control, limits
from toolbench.lab.worker.local_servers import register_local_server
from toolbench.lab.worker.session import run_session
from toolbench.providers.scripted_server import (
    ConnectionEnd,
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    chat_reply,
    error_reply,
)

pytestmark = pytest.mark.django_db(transaction=True)
TIMEOUT_SECONDS = 30


def assert_cells_equal_their_trials(run: Run) -> None:
    before = [read_counters(cell) for cell in run.cells.order_by("pk")]
    mark_stale(run.cells.values_list("pk", flat=True))
    recompute_stale()
    assert before == [read_counters(cell) for cell in run.cells.order_by("pk")]


def test_session_finishes_run_and_stores_every_step(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    run = launch_run(model, scenarios=("happy_path", "chat_only"), trials=2)
    assert run_worker_session(model) == 4
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    assert {trial.outcome for trial in run.trials.all()} == {"pass"}
    tool_trial = Trial.objects.filter(run=run, scenario="happy_path").first()
    assert tool_trial is not None
    kinds = list(Step.objects.filter(trial=tool_trial).values_list("kind", flat=True))
    assert kinds == ["exchange", "tool", "exchange", "tool", "exchange"]
    cell = Cell.objects.get(run=run, scenario="happy_path")
    assert (cell.passed, cell.queued, cell.running, cell.stale) == (2, 0, 0, False)
    assert_cells_equal_their_trials(run)


def test_session_stores_exact_bytes_of_exchange(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    run = launch_run(model, scenarios=("chat_only",), trials=1)
    run_worker_session(model)
    step = Step.objects.select_related("body").get(trial__run=run)
    assert bytes(step.body.request) == scripted.seen[0].body
    assert b'"content": "Done."' in bytes(step.body.response)
    assert (step.status, step.ok, step.input_tokens, step.response_bytes) == (200, True, 10, len(step.body.response))


def test_session_at_request_limit_pauses_run_without_failures(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted, concurrency=8)
    run = launch_run(model, trials=12, request_cap=20)
    run_worker_session(model)
    run.refresh_from_db()
    assert run.state == Run.State.PAUSED
    assert run.stopped_reason == "The limit of 20 requests is reached. Raise the limit and resume."
    assert len(scripted.seen) == run.requests_reserved == 20
    assert set(run.trials.values_list("state", "outcome")) <= {("queued", ""), ("done", "pass")}
    assert run.trials.filter(state="queued").exists()


def test_session_counts_exactly_the_requests_sent(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted, concurrency=3)
    run = launch_run(model, scenarios=("happy_path", "chat_only"), trials=4)
    run_worker_session(model)
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    assert len(scripted.seen) == run.requests_reserved == 4 * (3 + 1)


def test_session_continues_run_after_limit_is_raised(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    run = launch_run(model, trials=12, request_cap=20)
    run_worker_session(model)
    kept = set(run.trials.filter(outcome="pass").values_list("pk", "finished_at"))
    limits.set_limits(run.pk, request_cap=200, token_cap=None)
    control.resume_run(run.pk)
    run_worker_session(model)
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    assert run.trials.filter(outcome="pass").count() == 12
    assert kept <= set(run.trials.values_list("pk", "finished_at"))
    assert_cells_equal_their_trials(run)


def test_session_at_token_limit_pauses_run(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted, concurrency=1)
    run = launch_run(model, trials=10, token_cap=60)
    run_worker_session(model)
    run.refresh_from_db()
    assert run.state == Run.State.PAUSED
    assert run.stopped_reason.startswith("The limit of 60 tokens")
    assert run.trials.filter(outcome="").exists()


def test_session_cancelled_run_ends_hanging_request(elsewhere: RunInThread) -> None:
    with ScriptedServer(lambda seen: ScriptedReply(body=b"{", declared=100, ending=ConnectionEnd.HANG)) as hanging:
        model = make_scripted_model(hanging, concurrency=2)
        run = launch_run(model, trials=5)
        session = elsewhere(run_worker_session, model)
        assert hanging.arrived.acquire(timeout=TIMEOUT_SECONDS)
        control.cancel_run(run.pk)
        session.result(timeout=TIMEOUT_SECONDS)
    run.refresh_from_db()
    assert run.state == Run.State.CANCELLED
    assert set(run.trials.values_list("state", "outcome", "task_pass")) == {("done", "cancelled", None)}
    cancelled_step = Step.objects.filter(trial__run=run).first()
    assert cancelled_step is not None
    assert cancelled_step.error_code == "cancelled"
    assert_cells_equal_their_trials(run)


def test_session_with_lost_lease_writes_nothing(elsewhere: RunInThread) -> None:
    released = threading.Event()
    with ScriptedServer(lambda seen: answer_on_release(released, seen)) as blocking:
        model = make_scripted_model(blocking)
        run = launch_run(model, scenarios=("chat_only",), trials=1)
        session = elsewhere(run_worker_session, model, seconds=0.1)
        assert blocking.arrived.acquire(timeout=TIMEOUT_SECONDS)
        run.trials.update(lease=uuid4(), execution=F("execution") + 1)  # another worker has claimed it
        released.set()
        assert session.result(timeout=TIMEOUT_SECONDS) == 0
    trial = run.trials.get()
    assert (trial.state, trial.outcome, trial.steps.count()) == ("running", "", 0)


def test_session_counts_trial_with_lost_lease_once(elsewhere: RunInThread) -> None:
    released = threading.Event()
    with ScriptedServer(lambda seen: answer_on_release(released, seen)) as blocking:
        model = make_scripted_model(blocking)
        run = launch_run(model, scenarios=("chat_only",), trials=1)
        first = elsewhere(run_worker_session, model, seconds=0.1)
        assert blocking.arrived.acquire(timeout=TIMEOUT_SECONDS)
        run.trials.update(lease=None, state="queued")  # as a sweep does once a lease has run out
        second = elsewhere(run_worker_session, model)
        assert blocking.arrived.acquire(timeout=TIMEOUT_SECONDS)
        released.set()
        ended = first.result(timeout=TIMEOUT_SECONDS) + second.result(timeout=TIMEOUT_SECONDS)
    trial, cell = run.trials.get(), run.cells.get()
    assert ended == 1
    assert (trial.execution, trial.outcome, cell.passed) == (2, "pass", 1)
    assert set(trial.steps.values_list("execution", flat=True)) == {2}
    assert_cells_equal_their_trials(run)


def test_reclaimed_trial_keeps_new_lease(elsewhere: RunInThread, caplog: pytest.LogCaptureFixture) -> None:
    released = [threading.Event(), threading.Event()]
    with ScriptedServer(lambda seen: answer_on_release(released[len(blocking.seen) - 1], seen)) as blocking:
        model = make_scripted_model(blocking)
        run = launch_run(model, scenarios=("chat_only",), trials=1)
        session = elsewhere(run_worker_session, model)
        assert blocking.arrived.acquire(timeout=TIMEOUT_SECONDS)
        run.trials.update(lease=None, state="queued")  # as a sweep does after a suspended machine resumes
        assert blocking.arrived.acquire(timeout=TIMEOUT_SECONDS)
        released[0].set()
        while "its lease was lost" not in caplog.text:
            assert not released[1].wait(0.05)
        released[1].set()
        assert session.result(timeout=TIMEOUT_SECONDS) == 1
    trial = run.trials.get()
    assert (trial.execution, trial.outcome, trial.state) == (2, "pass", "done")


def test_session_back_off_frees_slot_for_other_trial() -> None:
    def play(seen: ReceivedRequest) -> ScriptedReply:
        return answer_correctly(seen) if len(busy.seen) > 1 else ScriptedReply(429, {"retry-after": "1"}, b"{}")

    with ScriptedServer(play) as busy:
        model = make_scripted_model(busy, concurrency=1, max_attempts=2)
        run = launch_run(model, trials=2)
        run_worker_session(model)
        prompts = [next(m["content"] for m in seen.json()["messages"] if m["role"] == "user") for seen in busy.seen]
    first, second = prompts[0], prompts[1]
    assert prompts == [first, second, second, second, first, first, first]
    assert Step.objects.filter(trial__run=run, attempt=2, retry_reason="rate_limited").count() == 1
    assert run.trials.get(retries=1).backoff_ms > 0


def test_session_alternates_between_runs_of_a_provider() -> None:
    together = threading.Barrier(2, timeout=TIMEOUT_SECONDS)

    def send_together(body: bytes) -> Iterator[bytes]:
        together.wait()
        yield body

    def play(seen: ReceivedRequest) -> ScriptedReply:
        body = answer_correctly(seen).body
        assert isinstance(body, bytes)
        headers = {"content-type": "application/json"}
        return ScriptedReply(headers=headers, body=send_together(body), ending=ConnectionEnd.CLOSE)

    with ScriptedServer(play) as pairing:
        model = make_scripted_model(pairing, concurrency=2)
        runs = [launch_run(model, scenarios=("chat_only",), trials=6).pk for _ in range(2)]
        run_worker_session(model)
    order = list(Trial.objects.order_by("started_at", "pk").values_list("run_id", flat=True))
    leads = [order[:count].count(runs[0]) - order[:count].count(runs[1]) for count in range(len(order) + 1)]
    # A trial that ends while others are being claimed still counts for its run.
    assert max(map(abs, leads)) <= 3
    assert leads[-1] == 0


def test_session_deleted_provider_ends_queued_trials_as_infra(elsewhere: RunInThread) -> None:
    released = threading.Event()
    with ScriptedServer(lambda seen: answer_on_release(released, seen)) as blocking:
        model = make_scripted_model(blocking, concurrency=1)
        run = launch_run(model, scenarios=("chat_only",), trials=3)
        session = elsewhere(run_worker_session, model)
        assert blocking.arrived.acquire(timeout=TIMEOUT_SECONDS)
        connect.delete_provider(model.provider_id)
        released.set()
        session.result(timeout=TIMEOUT_SECONDS)
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    assert sorted(run.trials.values_list("outcome", "failure_class")) == [
        ("infra", "provider_deleted"),
        ("infra", "provider_deleted"),
        ("pass", ""),
    ]
    assert run.configs.get().model_name == "scripted"


def test_session_missing_key_file_pauses_provider_with_advice(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_scripted_model(scripted, key_source="stored", key_encrypted=encrypt("sk-secret"))
    run = launch_run(model, scenarios=("chat_only",), trials=1)
    with monkeypatch.context() as patch:
        patch.setattr(settings, "KEY_FILE", settings.KEY_FILE.with_name("gone.key"))
        assert run_worker_session(model, seconds=0.5) == 0
    provider = Provider.objects.get(pk=model.provider_id)
    assert provider.paused_reason.endswith("has changed. Enter the key of scripted again.")
    assert run.trials.get().state == "queued"
    connect.edit_provider(provider.pk, connect.ConnectionSettings("scripted", scripted.base_url, key="sk-new"))
    assert run_worker_session(model) == 1
    assert scripted.seen[0].headers["authorization"] == "Bearer sk-new"


def test_session_leaves_trial_queued_until_local_server_is_ready(scripted: ScriptedServer) -> None:
    provider = Provider.objects.create(name="Here", kind="local", service="here")
    model = Model.objects.create(provider=provider, name="tiny")
    run = launch_run(model, scenarios=("chat_only",), trials=1)
    assert run_worker_session(model, seconds=0.5) == 0
    assert run.trials.get().execution == 0
    register_local_server("here", {"url": scripted.base_url, "key": "k", "model": "served"})
    assert run_worker_session(model) == 1
    assert scripted.seen[0].json()["model"] == "served"
    assert scripted.seen[0].json()["seed"] == run.trials.get().seed


def test_session_local_model_on_other_host_ends_as_infra(scripted: ScriptedServer) -> None:
    provider = Provider.objects.create(name="There", kind="local", service="there")
    model = Model.objects.create(provider=provider, name="tiny")
    run = launch_run(model, scenarios=("chat_only",), trials=1)
    register_local_server("there", {"url": scripted.base_url})
    ServiceAddress.objects.update(host="another-host")
    run_worker_session(model)
    trial = run.trials.get()
    assert (trial.outcome, trial.failure_class) == ("infra", "local_model_elsewhere")
    assert trial.sentence.startswith("tiny is served on another-host, for workers on that machine only")


@pytest.mark.parametrize(
    "content", ["a\x00b", "\ud800 alone", "<script>alert(1)</script>", "[" * 100_000, "é" * 10_000]
)
def test_session_stores_unusual_answer_text_unchanged(content: str) -> None:
    with ScriptedServer(lambda seen: chat_reply({"content": content}, model=content[:300])) as odd:
        model = make_scripted_model(odd)
        run = launch_run(model, scenarios=("chat_only",), trials=1)
        assert run_worker_session(model) == 1
    trial = run.trials.get()
    assert trial.outcome == "fail"
    assert bytes(trial.final_text).decode("utf-8", "surrogatepass") == content
    assert Step.objects.get(trial=trial).ok


def test_session_unknown_setting_ends_trials_as_plan_refused(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    run = launch_run(model, scenarios=("chat_only", "happy_path"), trials=1)
    run.configs.update(layers=[["run", {"a_key_of_tomorrow": 1}]])
    assert run_worker_session(model) == 2
    assert set(run.trials.values_list("outcome", "failure_class")) == {("infra", "plan_refused")}


def test_session_error_while_judging_is_logged_and_counts_requests(
    scripted: ScriptedServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a rule")

    model = make_scripted_model(scripted)
    run = launch_run(model, trials=1)
    monkeypatch.setattr(type(scenarios.lookup_scenario("happy_path")), "judge", broken)
    assert run_worker_session(model) == 1
    trial, cell = run.trials.get(), run.cells.get()
    assert (trial.outcome, trial.failure_class, trial.requests) == ("infra", "our_error", 3)
    assert (cell.requests, trial.steps.filter(kind="exchange").count()) == (3, 3)
    assert "Traceback" in caplog.text


def test_session_changed_scenario_version_sends_no_request(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    run = launch_run(model, trials=1)
    run.trials.update(scenario_version=99)
    run_worker_session(model)
    trial = run.trials.get()
    assert (trial.outcome, trial.failure_class, scripted.seen) == ("infra", "plan_refused", [])
    assert "was version 99 when the run was launched" in trial.sentence


def test_session_reads_missing_environment_key_again(scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_scripted_model(scripted, key_source="environment", key_env="A_KEY_FOR_THIS_TEST")
    run = launch_run(model, scenarios=("chat_only",), trials=1)
    notifications: list[int] = []
    assert (
        run_session(model.provider_id, build_session_options(30, on_claiming_ended=lambda: notifications.append(1)))
        == 0
    )
    assert "A_KEY_FOR_THIS_TEST" in Provider.objects.get(pk=model.provider_id).paused_reason
    assert notifications == []  # no worker is notified of trials that this one cannot run
    assert sweep().notified == (model.provider_id,)
    monkeypatch.setenv("A_KEY_FOR_THIS_TEST", "sk-set-at-last")
    assert run_worker_session(model) == 1
    assert (run.trials.get().outcome, Provider.objects.get(pk=model.provider_id).paused_reason) == ("pass", "")


def test_session_endpoint_error_counts_as_infra() -> None:
    with ScriptedServer(lambda seen: error_reply(503, "overloaded")) as failing:
        model = make_scripted_model(failing, max_attempts=1)
        run = launch_run(model, scenarios=("chat_only",), trials=1)
        run_worker_session(model)
    trial, cell = run.trials.get(), run.cells.get()
    assert (trial.outcome, trial.task_pass, cell.infra, cell.failed) == ("infra", None, 1, 0)


def test_session_asked_to_stop_requeues_running_trials(elsewhere: RunInThread) -> None:
    stopping = threading.Event()
    with ScriptedServer(delay_answers(TIMEOUT_SECONDS)) as slow:
        model = make_scripted_model(slow)
        run = launch_run(model, trials=2)
        session = elsewhere(
            run_session, model.provider_id, build_session_options(TIMEOUT_SECONDS, is_stopping=stopping.is_set)
        )
        assert slow.arrived.acquire(timeout=TIMEOUT_SECONDS)
        stopping.set()
        assert session.result(timeout=TIMEOUT_SECONDS) == 0
    assert set(run.trials.values_list("state", "lease", "execution")) == {("queued", None, 1)}


def test_session_renews_lease_during_slow_answer(elsewhere: RunInThread) -> None:
    released = threading.Event()
    with ScriptedServer(lambda seen: answer_on_release(released, seen)) as blocking:
        model = make_scripted_model(blocking)
        run = launch_run(model, scenarios=("chat_only",), trials=1)
        session = elsewhere(run_worker_session, model)
        assert blocking.arrived.acquire(timeout=TIMEOUT_SECONDS)
        until = time.monotonic() + 2 * settings.LEASE_SECONDS
        while time.monotonic() < until:
            assert sweep().expired == 0
            released.wait(0.1)
        released.set()
        session.result(timeout=TIMEOUT_SECONDS)
    assert run.trials.get().execution == 1
