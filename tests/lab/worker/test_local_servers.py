"""Addresses of local servers, and trials and probes at servers that are killed, frozen or unreachable."""

import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.lab.conftest import RunInThread
from tests.lab.scripted_runs import answer_correctly, launch_run, make_scripted_model, run_worker_session
from tests.lab.simulated_runs import get_simulated_model, serve_simulated_models
from tests.wait import wait_until
from tests.worker_process import build_environment
from toolbench.installation import ROOT
from toolbench.lab import builtin_data
from toolbench.lab.endpoints.probe_job import queue_probe, run_probe
from toolbench.lab.models import Model, Provider, Run, ServiceAddress, Step, Trial
from toolbench.lab.planning.auto_method import decide_waiting_methods
from toolbench.lab.worker import local_servers
from toolbench.lab.worker.local_servers import (
    MAX_SERVER_LOSSES,
    is_registered,
    register_local_server,
    withdraw_address,
    withdraw_host_servers,
)
from toolbench.providers.scripted_server import ConnectionEnd, ReceivedRequest, ScriptedReply, ScriptedServer
from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.database_user import build_confined_command
from toolbench.running.paths import Lock
from toolbench.running.ready_lines import ServiceRegistrar
from toolbench.running.supervisor import Supervisor

pytestmark = pytest.mark.django_db(transaction=True)
TIMEOUT_SECONDS = 120
TRIALS = 40


def test_register_local_server_again_replaces_address() -> None:
    register_local_server("simulated", {"url": "http://127.0.0.1:1", "key": "a", "model": "m"})
    register_local_server("simulated", {"url": "http://127.0.0.1:2"})

    assert list(ServiceAddress.objects.values_list("name", "url", "key")) == [("simulated", "http://127.0.0.1:2", "")]


def test_withdraw_host_servers_keeps_other_hosts() -> None:
    register_local_server("simulated", {"url": "http://127.0.0.1:1"})
    register_local_server("elsewhere", {"url": "http://127.0.0.1:2"})
    ServiceAddress.objects.filter(name="elsewhere").update(host="another")

    withdraw_host_servers()

    assert [row.name for row in ServiceAddress.objects.all()] == ["elsewhere"]


def test_register_service_gone_withdraws_this_hosts_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"url": "http://127.0.0.1:1"}\n'))
    call_command("register_service", "simulated")
    register_local_server("elsewhere", {"url": "http://127.0.0.1:2"})
    ServiceAddress.objects.filter(name="elsewhere").update(host="another")

    call_command("register_service", "simulated", gone=True)
    call_command("register_service", "elsewhere", gone=True)

    assert [row.name for row in ServiceAddress.objects.all()] == ["elsewhere"]


def test_withdraw_address_keeps_newer_registration() -> None:
    register_local_server("simulated", {"url": "http://127.0.0.1:1", "key": "old"})
    dead = ServiceAddress.objects.get()
    register_local_server("simulated", {"url": "http://127.0.0.1:2", "key": "new"})

    withdraw_address(dead)

    assert not is_registered(dead)
    assert is_registered(ServiceAddress.objects.get())


@pytest.fixture
def local_model() -> Model:
    """Make a model of a local server that is called `here`."""
    provider = Provider.objects.create(name="Here", kind="local", service="here", concurrency=4, max_attempts=3)
    return Model.objects.create(provider=provider, name="tiny")


@pytest.fixture
def dead_url() -> Iterator[str]:
    """Yield an address of this machine on which no server listens during the test."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def test_session_unreachable_server_requeues_trial_until_registered(
    local_model: Model, dead_url: str, scripted: ScriptedServer
) -> None:
    run = launch_run(local_model, scenarios=("chat_only",), trials=4)
    register_local_server("here", {"url": dead_url, "key": "k", "model": "served"})

    assert run_worker_session(local_model, seconds=1.5) == 0
    assert set(run.trials.values_list("state", "outcome", "execution")) == {("queued", "", 1)}
    assert not ServiceAddress.objects.exists()

    register_local_server("here", {"url": scripted.base_url, "key": "k", "model": "served"})
    assert run_worker_session(local_model) == 4
    assert set(run.trials.values_list("outcome", "execution")) == {("pass", 2)}
    run.refresh_from_db()
    sent = Step.objects.filter(trial__run=run, kind="exchange").count()
    assert (sent, run.requests_reserved) == (8, 8)  # one that was refused and one that was answered for each


def test_session_trial_at_max_server_losses_ends_as_infra(local_model: Model, dead_url: str) -> None:
    run = launch_run(local_model, scenarios=("chat_only",), trials=1)
    run.trials.update(server_losses=MAX_SERVER_LOSSES)
    register_local_server("here", {"url": dead_url})

    assert run_worker_session(local_model) == 1

    trial = run.trials.get()
    assert (trial.outcome, trial.failure_class) == ("infra", "connection_failed")


class DyingServer:
    """A local server that stops at every streamed request: all its open answers end, and a new server starts."""

    def __init__(self) -> None:
        self.deaths = 0
        self._poisoned = threading.Event()
        self._server = self._start()

    def restart_until(self, done: Callable[[], bool]) -> None:
        while not done():
            if self._poisoned.wait(0.05):
                self._server.stop()
                self.deaths += 1
                self._server = self._start()
        self._server.stop()

    def _start(self) -> ScriptedServer:
        self._poisoned.clear()
        server = ScriptedServer(lambda seen: self._answer(server, seen)).start()
        register_local_server("here", {"url": server.base_url})
        return server

    def _answer(self, server: ScriptedServer, seen: ReceivedRequest) -> ScriptedReply:
        if seen.method == "POST" and seen.json().get("stream"):
            self._poisoned.set()
            return ScriptedReply(raw=b"", ending=ConnectionEnd.HANG)
        answer = answer_correctly(seen)
        assert isinstance(answer.body, bytes)
        return replace(answer, body=_yield_unless_stopped(server, answer.body), declared=len(answer.body))


def _yield_unless_stopped(server: ScriptedServer, body: bytes) -> Iterator[bytes]:
    """Yield the whole body unless the server stops within half a second."""
    if server.stopping.wait(0.5):
        raise ConnectionResetError
    yield body


def test_session_trial_that_kills_its_server_ends_no_other(local_model: Model, elsewhere: RunInThread) -> None:
    Provider.objects.update(concurrency=9)
    fatal_run = launch_run(local_model, scenarios=("chat_only",), trials=1, streams=(True,))
    other_run = launch_run(local_model, scenarios=("chat_only",), trials=8, streams=(False,))
    dying_server = DyingServer()

    session = elsewhere(run_worker_session, local_model, seconds=TIMEOUT_SECONDS)
    dying_server.restart_until(session.done)

    assert set(other_run.trials.values_list("outcome", flat=True)) == {"pass"}
    assert fatal_run.trials.get().outcome == "infra"
    assert dying_server.deaths == MAX_SERVER_LOSSES + 1
    assert other_run.trials.filter(server_losses__gt=0).exists()


def test_session_frozen_server_requeues_trial(local_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_servers, "HEALTH_TIMEOUT_SECONDS", 0.2)
    run = launch_run(local_model, scenarios=("chat_only",), trials=1, deadline_seconds=1.0)
    with ScriptedServer(lambda seen: ScriptedReply(raw=b"", ending=ConnectionEnd.HANG)) as frozen:
        register_local_server("here", {"url": frozen.base_url})
        assert run_worker_session(local_model, seconds=0.2) == 0
    assert run.trials.get().state == "queued"
    assert ServiceAddress.objects.exists()  # it may wake up


@pytest.mark.parametrize("ending", [ConnectionEnd.RESET, ConnectionEnd.CLOSE, ConnectionEnd.HANG])
def test_session_broken_answer_of_live_server_ends_as_infra(local_model: Model, ending: ConnectionEnd) -> None:
    def answers_health_only(seen: object) -> ScriptedReply:
        return ScriptedReply(404) if getattr(seen, "method", "") == "GET" else ScriptedReply(raw=b"", ending=ending)

    run = launch_run(local_model, scenarios=("chat_only",), trials=1, read_seconds=1.0)
    Provider.objects.update(max_attempts=1)
    with ScriptedServer(answers_health_only) as living:
        register_local_server("here", {"url": living.base_url})
        assert run_worker_session(local_model) == 1
    assert run.trials.get().outcome == "infra"


def test_session_simulated_dropped_connections_end_as_infra() -> None:
    with serve_simulated_models():
        model = get_simulated_model("drops-connection")
        Provider.objects.filter(pk=model.provider_id).update(max_attempts=1)
        run = launch_run(model, profiles=(), trials=40)
        run_worker_session(model)
    assert {"pass", "infra"} == set(run.trials.values_list("outcome", flat=True))
    assert set(run.trials.values_list("execution", flat=True)) == {1}


def test_session_unreachable_remote_server_ends_trial_as_infra(dead_url: str, scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted, base_url=dead_url)
    run = launch_run(model, scenarios=("chat_only",), trials=1)
    assert run_worker_session(model) == 1
    assert run.trials.get().outcome == "infra"


def test_run_probe_unreachable_server_requeues_probe(
    local_model: Model, dead_url: str, scripted: ScriptedServer
) -> None:
    probe = queue_probe(local_model, "first_use")
    register_local_server("here", {"url": dead_url})
    states = []
    for _ in range(2):
        assert run_probe(probe.pk, on_finished=decide_waiting_methods)
        probe.refresh_from_db()
        states.append((probe.state, probe.execution))

    register_local_server("here", {"url": scripted.base_url})
    assert run_probe(probe.pk, on_finished=decide_waiting_methods)
    probe.refresh_from_db()

    assert states == [("queued", 1), ("queued", 2)]
    assert (probe.state, probe.error) == ("done", "")


class SupervisedServer:
    """The real supervisor with the real simulated server as its one child, on the test's database."""

    def __init__(self, folder: Path) -> None:
        self.messages: list[str] = []
        environment = {**os.environ, **build_environment()}
        self.supervisor = Supervisor(
            folder, Lock(folder / "lock").handle, print_message=self.messages.append, max_silent_seconds=60
        )
        self.registrar = self.supervisor.registrar = ServiceRegistrar(environment, self.messages.append)
        command = [sys.executable, "-m", "toolbench.providers.simulated", "--latency", "0.1"]
        command = build_confined_command(
            command, death_signal=signal.SIGKILL
        )  # the server must not survive a pytest that is killed
        self.supervisor.add(ChildSpec("simulated", command, environment, ROOT, has_ready_line=True))

    @property
    def child(self) -> ChildProcess | None:
        return self.supervisor._supervised[0].child

    def tick_until(self, done: Callable[[], bool]) -> None:
        def is_done_else_tick() -> bool:
            if done():
                return True
            self.supervisor.tick()
            return False

        wait_until(is_done_else_tick, seconds=TIMEOUT_SECONDS, describe=lambda: self.messages)

    def kill(self) -> None:
        """Kill the server once it is ready, since it may still be starting after an earlier kill."""
        self.tick_until(lambda: ServiceAddress.objects.filter(name="simulated").exists() and self.child is not None)
        assert self.child is not None
        self.child.process.send_signal(signal.SIGKILL)

    def stop(self) -> None:
        self.registrar.close()
        self.supervisor.stop({"simulated"}, must_kill=lambda: True)


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[SupervisedServer]:
    supervised = SupervisedServer(tmp_path)
    yield supervised
    supervised.stop()


def kill_often(supervised: SupervisedServer, run: Run, session: Future[int]) -> None:
    """Kill the server three times during its answers, the first time while every trial in flight waits for one."""
    limit = 8

    def is_done(share: float) -> bool:
        return run.trials.filter(state="done").count() >= TRIALS * share

    supervised.tick_until(partial(is_done, 0.1))
    assert supervised.child is not None
    supervised.child.process.send_signal(signal.SIGSTOP)
    waiting: list[set[int]] = []

    def is_stuck() -> bool:
        """Return whether the same trials have been in flight for a second, so none was answered before the stop."""
        waiting.append(set(run.trials.filter(state="running").values_list("pk", flat=True)))
        return len(waiting[-1]) == limit and len(waiting) > 20 and all(item == waiting[-1] for item in waiting[-20:])

    supervised.tick_until(is_stuck)
    supervised.child.process.send_signal(signal.SIGKILL)
    for share in (0.4, 0.7):
        supervised.tick_until(partial(is_done, share))
        supervised.kill()
    supervised.tick_until(session.done)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_session_killed_server_ends_no_trial(
    supervised: SupervisedServer, elsewhere: RunInThread, streamed: bool
) -> None:
    builtin_data.load_builtin_data()
    model = get_simulated_model("perfect")
    Provider.objects.filter(pk=model.provider_id).update(concurrency=8)
    run = launch_run(model, profiles=(), trials=TRIALS, streams=(streamed,))
    supervised.tick_until(ServiceAddress.objects.exists)

    session = elsewhere(run_worker_session, model, seconds=TIMEOUT_SECONDS)
    kill_often(supervised, run, session)

    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    assert set(run.trials.values_list("state", "outcome")) == {("done", "pass")}
    assert Trial.objects.filter(run=run, execution__gt=1).count() >= 8
    assert run.requests_reserved == Step.objects.filter(trial__run=run, kind="exchange").count()
