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
from toolbench.lab.runs import control
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
PATIENCE = 30  # seconds; what hangs for longer is broken


def assert_cells_equal_their_trials(run: Run) -> None:
    before = [read_counters(cell) for cell in run.cells.order_by("pk")]
    mark_stale(run.cells.values_list("pk", flat=True))
    recompute_stale()
    assert before == [read_counters(cell) for cell in run.cells.order_by("pk")]


def test_a_run_goes_from_launch_to_verdicts_with_every_step_stored(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    run = launch_run(model, scenarios=("happy_path", "chat_only"), trials=2)
    assert run_worker_session(model) == 4
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    assert {trial.outcome for trial in run.trials.all()} == {"pass"}
    happy = Trial.objects.filter(run=run, scenario="happy_path").first()
    assert happy is not None
    kinds = list(Step.objects.filter(trial=happy).values_list("kind", flat=True))
    assert kinds == ["exchange", "tool", "exchange", "tool", "exchange"]
    cell = Cell.objects.get(run=run, scenario="happy_path")
    assert (cell.passed, cell.queued, cell.running, cell.stale) == (2, 0, 0, False)
    assert_cells_equal_their_trials(run)


def test_every_byte_of_an_exchange_is_stored(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    run = launch_run(model, scenarios=("chat_only",), trials=1)
    run_worker_session(model)
    step = Step.objects.select_related("body").get(trial__run=run)
    assert bytes(step.body.request) == scripted.seen[0].body
    assert b'"content": "Done."' in bytes(step.body.response)
    assert (step.status, step.ok, step.input_tokens, step.response_bytes) == (200, True, 10, len(step.body.response))


def test_the_cap_on_requests_holds_and_nothing_counts_as_a_failure(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted, concurrency=8)
    run = launch_run(model, trials=12, request_cap=20)
    run_worker_session(model)
    run.refresh_from_db()
    assert run.state == Run.State.PAUSED
    assert run.stopped_reason == "The limit of 20 requests is reached. Raise the limit and resume."
    assert len(scripted.seen) == run.requests_reserved == 20
    assert set(run.trials.values_list("state", "outcome")) <= {("queued", ""), ("done", "pass")}
    assert run.trials.filter(state="queued").exists()


def test_the_requests_counted_at_the_end_are_those_that_were_sent(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted, concurrency=3)
    run = launch_run(model, scenarios=("happy_path", "chat_only"), trials=4)
    run_worker_session(model)
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    assert len(scripted.seen) == run.requests_reserved == 4 * (3 + 1)


def test_a_run_goes_on_after_its_cap_was_raised(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    run = launch_run(model, trials=12, request_cap=20)
    run_worker_session(model)
    kept = set(run.trials.filter(outcome="pass").values_list("pk", "finished_at"))
    control.set_limits(run.pk, request_cap=200, token_cap=None)
    control.resume_run(run.pk)
    run_worker_session(model)
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    assert run.trials.filter(outcome="pass").count() == 12
    assert kept <= set(run.trials.values_list("pk", "finished_at"))
    assert_cells_equal_their_trials(run)


def test_the_cap_on_tokens_pauses_the_run(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted, concurrency=1)
    run = launch_run(model, trials=10, token_cap=60)
    run_worker_session(model)
    run.refresh_from_db()
    assert run.state == Run.State.PAUSED
    assert run.stopped_reason.startswith("The limit of 60 tokens")
    assert run.trials.filter(outcome="").exists()


def test_a_cancel_reaches_a_request_that_never_ends(elsewhere: RunInThread) -> None:
    with ScriptedServer(lambda seen: ScriptedReply(body=b"{", declared=100, ending=ConnectionEnd.HANG)) as hanging:
        model = make_scripted_model(hanging, concurrency=2)
        run = launch_run(model, trials=5)
        shift = elsewhere(run_worker_session, model)
        assert hanging.arrived.acquire(timeout=PATIENCE)
        control.cancel_run(run.pk)
        shift.result(timeout=PATIENCE)
    run.refresh_from_db()
    assert run.state == Run.State.CANCELLED
    assert set(run.trials.values_list("state", "outcome", "task_pass")) == {("done", "cancelled", None)}
    cut = Step.objects.filter(trial__run=run).first()
    assert cut is not None
    assert cut.error_code == "cancelled"
    assert_cells_equal_their_trials(run)


def test_a_late_writer_finds_its_writes_refused(elsewhere: RunInThread) -> None:
    released = threading.Event()
    with ScriptedServer(lambda seen: answer_on_release(released, seen)) as blocking:
        model = make_scripted_model(blocking)
        run = launch_run(model, scenarios=("chat_only",), trials=1)
        shift = elsewhere(run_worker_session, model, seconds=0.1)
        assert blocking.arrived.acquire(timeout=PATIENCE)
        run.trials.update(lease=uuid4(), execution=F("execution") + 1)  # another worker has it now
        released.set()
        assert shift.result(timeout=PATIENCE) == 0
    trial = run.trials.get()
    assert (trial.state, trial.outcome, trial.steps.count()) == ("running", "", 0)


def test_a_trial_is_counted_once_when_its_lease_is_lost(elsewhere: RunInThread) -> None:
    released = threading.Event()
    with ScriptedServer(lambda seen: answer_on_release(released, seen)) as blocking:
        model = make_scripted_model(blocking)
        run = launch_run(model, scenarios=("chat_only",), trials=1)
        first = elsewhere(run_worker_session, model, seconds=0.1)
        assert blocking.arrived.acquire(timeout=PATIENCE)
        run.trials.update(lease=None, state="queued")  # as a sweep does once a lease has run out
        second = elsewhere(run_worker_session, model)
        assert blocking.arrived.acquire(timeout=PATIENCE)
        released.set()
        ended = first.result(timeout=PATIENCE) + second.result(timeout=PATIENCE)
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
        shift = elsewhere(run_worker_session, model)
        assert blocking.arrived.acquire(timeout=PATIENCE)
        run.trials.update(lease=None, state="queued")  # as a sweep does of a machine that slept
        assert blocking.arrived.acquire(timeout=PATIENCE)
        released[0].set()
        while "its lease was lost" not in caplog.text:
            assert not released[1].wait(0.05)
        released[1].set()
        assert shift.result(timeout=PATIENCE) == 1
    trial = run.trials.get()
    assert (trial.execution, trial.outcome, trial.state) == (2, "pass", "done")


def test_the_slot_of_a_trial_that_backs_off_is_free() -> None:
    def play(seen: ReceivedRequest) -> ScriptedReply:
        return answer_correctly(seen) if len(busy.seen) > 1 else ScriptedReply(429, {"retry-after": "1"}, b"{}")

    with ScriptedServer(play) as busy:
        model = make_scripted_model(busy, concurrency=1, max_attempts=2)
        run = launch_run(model, trials=2)
        run_worker_session(model)
        asked = [next(m["content"] for m in seen.json()["messages"] if m["role"] == "user") for seen in busy.seen]
    waits, goes_on = asked[0], asked[1]
    assert asked == [waits, goes_on, goes_on, goes_on, waits, waits, waits]
    assert Step.objects.filter(trial__run=run, attempt=2, retry_reason="rate_limited").count() == 1
    assert run.trials.get(retries=1).backoff_ms > 0


def test_runs_share_a_provider_fairly() -> None:
    together = threading.Barrier(2, timeout=PATIENCE)

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


def test_a_deleted_provider_harms_no_run(elsewhere: RunInThread) -> None:
    released = threading.Event()
    with ScriptedServer(lambda seen: answer_on_release(released, seen)) as blocking:
        model = make_scripted_model(blocking, concurrency=1)
        run = launch_run(model, scenarios=("chat_only",), trials=3)
        shift = elsewhere(run_worker_session, model)
        assert blocking.arrived.acquire(timeout=PATIENCE)
        connect.delete_provider(model.provider_id)
        released.set()
        shift.result(timeout=PATIENCE)
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    assert sorted(run.trials.values_list("outcome", "failure_class")) == [
        ("infra", "provider_deleted"),
        ("infra", "provider_deleted"),
        ("pass", ""),
    ]
    assert run.configs.get().model_name == "scripted"


def test_a_lost_key_file_pauses_the_provider_with_what_to_do(
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


def test_a_trial_waits_until_its_local_server_is_ready(scripted: ScriptedServer) -> None:
    provider = Provider.objects.create(name="Here", kind="local", service="here")
    model = Model.objects.create(provider=provider, name="tiny")
    run = launch_run(model, scenarios=("chat_only",), trials=1)
    assert run_worker_session(model, seconds=0.5) == 0
    assert run.trials.get().execution == 0
    register_local_server("here", {"url": scripted.base_url, "key": "k", "model": "served"})
    assert run_worker_session(model) == 1
    assert scripted.seen[0].json()["model"] == "served"
    assert scripted.seen[0].json()["seed"] == run.trials.get().seed


def test_a_local_model_of_another_host_is_refused_with_a_sentence(scripted: ScriptedServer) -> None:
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
def test_whatever_a_model_says_is_stored(content: str) -> None:
    with ScriptedServer(lambda seen: chat_reply({"content": content}, model=content[:300])) as odd:
        model = make_scripted_model(odd)
        run = launch_run(model, scenarios=("chat_only",), trials=1)
        assert run_worker_session(model) == 1
    trial = run.trials.get()
    assert trial.outcome == "fail"
    assert bytes(trial.final_text).decode("utf-8", "surrogatepass") == content
    assert Step.objects.get(trial=trial).ok


def test_a_plan_this_engine_does_not_take_ends_the_trial_and_not_the_shift(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    run = launch_run(model, scenarios=("chat_only", "happy_path"), trials=1)
    run.configs.update(layers=[["run", {"a_key_of_tomorrow": 1}]])
    assert run_worker_session(model) == 2
    assert set(run.trials.values_list("outcome", "failure_class")) == {("infra", "plan_refused")}


def test_defect_while_judging_is_logged_and_requests_are_counted(
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


def test_a_scenario_that_changed_after_the_launch_is_not_tried(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    run = launch_run(model, trials=1)
    run.trials.update(scenario_version=99)
    run_worker_session(model)
    trial = run.trials.get()
    assert (trial.outcome, trial.failure_class, scripted.seen) == ("infra", "plan_refused", [])
    assert "was version 99 when the run was launched" in trial.sentence


def test_a_key_that_was_missing_is_looked_for_again(scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_scripted_model(scripted, key_source="environment", key_env="A_KEY_FOR_THIS_TEST")
    run = launch_run(model, scenarios=("chat_only",), trials=1)
    told: list[int] = []
    assert run_session(model.provider_id, build_session_options(30, on_claiming_ended=lambda: told.append(1))) == 0
    assert "A_KEY_FOR_THIS_TEST" in Provider.objects.get(pk=model.provider_id).paused_reason
    assert told == []  # nobody is woken for what this worker cannot do
    assert sweep().notified == (model.provider_id,)
    monkeypatch.setenv("A_KEY_FOR_THIS_TEST", "sk-set-at-last")
    assert run_worker_session(model) == 1
    assert (run.trials.get().outcome, Provider.objects.get(pk=model.provider_id).paused_reason) == ("pass", "")


def test_a_failing_endpoint_is_no_failure_of_the_model() -> None:
    with ScriptedServer(lambda seen: error_reply(503, "overloaded")) as failing:
        model = make_scripted_model(failing, max_attempts=1)
        run = launch_run(model, scenarios=("chat_only",), trials=1)
        run_worker_session(model)
    trial, cell = run.trials.get(), run.cells.get()
    assert (trial.outcome, trial.task_pass, cell.infra, cell.failed) == ("infra", None, 1, 0)


def test_a_worker_asked_to_stop_queues_again_what_it_cannot_end(elsewhere: RunInThread) -> None:
    stopping = threading.Event()
    with ScriptedServer(delay_answers(PATIENCE)) as slow:
        model = make_scripted_model(slow)
        run = launch_run(model, trials=2)
        shift = elsewhere(run_session, model.provider_id, build_session_options(PATIENCE, is_stopping=stopping.is_set))
        assert slow.arrived.acquire(timeout=PATIENCE)
        stopping.set()
        assert shift.result(timeout=PATIENCE) == 0
    assert set(run.trials.values_list("state", "lease", "execution")) == {("queued", None, 1)}


def test_a_lease_is_kept_while_an_answer_takes_longer_than_it(elsewhere: RunInThread) -> None:
    released = threading.Event()
    with ScriptedServer(lambda seen: answer_on_release(released, seen)) as blocking:
        model = make_scripted_model(blocking)
        run = launch_run(model, scenarios=("chat_only",), trials=1)
        shift = elsewhere(run_worker_session, model)
        assert blocking.arrived.acquire(timeout=PATIENCE)
        until = time.monotonic() + 2 * settings.LEASE_SECONDS
        while time.monotonic() < until:
            assert sweep().expired == 0
            released.wait(0.1)
        released.set()
        shift.result(timeout=PATIENCE)
    assert run.trials.get().execution == 1
