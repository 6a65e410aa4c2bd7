import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError, transaction
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.factories import make_model, make_provider
from tests.lab.conftest import RunInThread, wait_for_blocked_sessions
from tests.lab.scripted_runs import launch_run, make_scripted_model
from toolbench.lab.credentials.keys import KeyUnavailableError
from toolbench.lab.endpoints import probe_job
from toolbench.lab.endpoints.probe_job import queue_probe, queue_probes, run_probe
from toolbench.lab.endpoints.probe_storage import (
    ClaimedProbe,
    ProbeLeaseLostError,
    claim_probe,
    renew_lease,
    requeue_lost_probes,
    store_exchanges,
)
from toolbench.lab.models import Model, Probe, ProbeExchange, Provider, Trial
from toolbench.lab.planning.auto_method import decide_waiting_methods
from toolbench.lab.worker import claims
from toolbench.providers.probing.check_result import ProbeCheck
from toolbench.providers.probing.prober import Prober, ProbeRequest
from toolbench.providers.scripted_server import (
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    error_reply,
    text_reply,
    tool_call_reply,
)

pytestmark = pytest.mark.django_db(transaction=True)


def answer_echo(seen: ReceivedRequest) -> ScriptedReply:
    """Call probe_echo as requested, then answer with a text about its result."""
    messages = seen.json()["messages"]
    return (
        text_reply("It gave it back.")
        if messages[-1]["role"] == "tool"
        else tool_call_reply(("probe_echo", {"value": "x"}))
    )


@pytest.fixture
def model(scripted: ScriptedServer) -> Model:
    return make_scripted_model(scripted)


def run_model_probe(model: Model, player: Any, kind: str = "first_use") -> Probe:
    with ScriptedServer(player) as provider:
        model.provider.base_url = provider.base_url
        model.provider.save()
        probe = queue_probe(model, kind, why="a test")
        assert run_probe(probe.pk, on_finished=decide_waiting_methods)
    probe.refresh_from_db()
    return probe


def test_run_probe_stores_verdict_capabilities_and_exchanges(model: Model) -> None:
    probe = run_model_probe(model, answer_echo)

    assert (probe.state, probe.ok, probe.error) == ("done", True, "")
    assert probe.learned["supports_tool_use"] is True
    assert probe.finished_at is not None
    assert probe.base_url.startswith("http://127.0.0.1")
    assert [check["slug"] for check in probe.checks] == ["tools", "round_trip", "shape"]
    exchanges = list(probe.exchanges.all())
    assert [exchange.ordinal for exchange in exchanges] == [1, 2]
    assert json.loads(bytes(exchanges[0].request))["tools"][0]["function"]["name"] == "probe_echo"
    assert b"tool_calls" in bytes(exchanges[0].response)
    assert len(probe.raw_hash) == 64
    assert probe.latency_ms


def test_run_probe_inconclusive_stores_reason_and_no_capability(model: Model) -> None:
    probe = run_model_probe(model, lambda seen: error_reply(401, "invalid key"), kind="conformance")

    assert (probe.ok, probe.error, probe.learned) == (False, "authentication", {})
    assert "invalid key" in probe.sentence
    assert probe.exchanges.count() == 1


def test_run_probe_masks_key_in_stored_exchanges(model: Model) -> None:
    secret = "sk-very-secret-key-1"
    model.provider.headers_encrypted = None
    model.provider.key_source = "environment"
    model.provider.key_env = "PROBE_TEST_KEY"
    model.provider.save()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROBE_TEST_KEY", secret)
        probe = run_model_probe(model, lambda seen: error_reply(400, f"no tools for {secret}"))

    stored = b"".join(bytes(exchange.request) + bytes(exchange.response) for exchange in probe.exchanges.all())
    assert secret.encode() not in stored
    assert secret not in json.dumps([probe.sentence, probe.checks])


def test_queue_probe_again_returns_open_probe_of_same_kind(model: Model) -> None:
    first = queue_probe(model, "conformance")

    assert queue_probe(model, "conformance").pk == first.pk
    assert queue_probe(model, "first_use").pk != first.pk


@pytest.mark.parametrize("is_for_provider", [False, True])
def test_queue_probe_twice_at_once_queues_one_probe(
    model: Model, elsewhere: RunInThread, is_for_provider: bool
) -> None:
    def queue() -> int:
        return queue_probes(model.provider_id)[0].pk if is_for_provider else queue_probe(model, "conformance").pk

    with transaction.atomic():
        first = queue()
        second = elsewhere(queue)
        wait_for_blocked_sessions()

    assert second.result(timeout=30) == first
    assert Probe.objects.count() == 1


def test_claim_probe_while_another_runs_returns_none(model: Model) -> None:
    first, second = queue_probe(model, "conformance"), queue_probe(model, "first_use")

    assert claim_probe(first.pk) is not None
    assert claim_probe(second.pk) is None
    assert claim_probe(first.pk) is None


def test_requeue_lost_probes_refuses_writes_of_old_lease(model: Model) -> None:
    probe = queue_probe(model, "first_use")
    claim = claim_probe(probe.pk)
    assert claim is not None
    Probe.objects.filter(pk=probe.pk).update(lease_until=timezone.now() - timedelta(seconds=1))

    assert requeue_lost_probes() == (probe.pk,)
    with pytest.raises(ProbeLeaseLostError):
        store_exchanges(claim, [], [ProbeCheck("tools", "passed", "Too late.")])
    probe.refresh_from_db()
    assert (probe.state, probe.checks) == ("queued", [])


def test_requeue_lost_probes_returns_one_probe_of_each_provider(model: Model) -> None:
    others = [make_model(f"other-{number}", provider=model.provider) for number in range(3)]
    for queued_model in (model, *others):
        queue_probe(queued_model, "conformance")
    urgent = queue_probe(others[2], "first_use")
    elsewhere = queue_probe(make_model(provider=make_provider(name="Elsewhere")), "conformance")
    assert set(requeue_lost_probes()) == {urgent.pk, elsewhere.pk}


def test_run_probe_after_lost_execution_keeps_its_exchanges(model: Model) -> None:
    probe = queue_probe(model, "first_use")
    claim = claim_probe(probe.pk)
    assert claim is not None
    ProbeExchange.objects.create(probe=probe, execution=claim.execution, ordinal=1, check_slug="tools", duration_ms=5)
    Probe.objects.filter(pk=probe.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    requeue_lost_probes()
    with ScriptedServer(answer_echo) as provider:
        model.provider.base_url = provider.base_url
        model.provider.save()
        assert run_probe(probe.pk, on_finished=decide_waiting_methods)

    assert list(probe.exchanges.values_list("execution", "ordinal")) == [(1, 1), (2, 1), (2, 2)]


@pytest.mark.parametrize(
    ("price", "earlier", "sent"), [(1.0, 5, 2), (1.0, 8, 2), (1.0, 9, 1), (1.0, 10, 0), (0.0, 10, 2)]
)
def test_run_probe_counts_paid_requests_of_lost_executions(model: Model, price: float, earlier: int, sent: int) -> None:
    Model.objects.update(price={"input": price, "output": price, "date": "2026-01-01", "source": "entered"})
    probe = queue_probe(model, "first_use")
    for ordinal in range(earlier):
        ProbeExchange.objects.create(probe=probe, execution=1, ordinal=ordinal, check_slug="tools", duration_ms=5)
    Probe.objects.update(execution=1)
    with ScriptedServer(answer_echo) as provider:
        Provider.objects.update(base_url=provider.base_url)
        assert run_probe(probe.pk, on_finished=decide_waiting_methods)
        assert len(provider.seen) == sent
    probe.refresh_from_db()
    assert (probe.state, probe.ok, "interrupted" in probe.sentence) == ("done", sent == 2, sent < 2)
    assert probe.exchanges.count() == earlier + sent


def test_run_probe_asked_to_stop_stores_exchanges_of_unfinished_check(model: Model) -> None:
    with ScriptedServer(answer_echo) as provider:
        Provider.objects.update(base_url=provider.base_url)
        probe = queue_probe(model, "first_use")
        assert run_probe(probe.pk, lambda: bool(provider.seen), on_finished=decide_waiting_methods)
        assert len(provider.seen) == 1
    probe.refresh_from_db()
    assert (probe.state, probe.exchanges.count()) == ("queued", 1)


def test_run_probe_out_of_time_stores_exchanges_of_unfinished_check(
    model: Model, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """The time ends while the exchange waits for the database thread, which renews the lease."""
    is_renewing, may_renew = threading.Event(), threading.Event()

    def renew_slowly(claimed: ClaimedProbe) -> bool:
        is_renewing.set()
        return may_renew.wait(10) and renew_lease(claimed)

    async def probe_briefly(prober: Prober) -> AsyncIterator[ProbeCheck]:
        await prober.ask(ProbeRequest("", "Hello."))
        await asyncio.to_thread(is_renewing.wait, 10)
        asyncio.get_running_loop().call_later(0.2, may_renew.set)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await prober.ask(ProbeRequest("", "Hello again."))
        yield ProbeCheck("tools", "unknown", "Inconclusive: the probe ran out of time.")

    settings.HEARTBEAT_SECONDS = 0.01
    monkeypatch.setattr(probe_job, "renew_lease", renew_slowly)
    monkeypatch.setattr(probe_job, "probe_first_use", probe_briefly)
    probe = run_model_probe(model, lambda seen: text_reply("Hello."))
    assert (probe.state, probe.exchanges.count()) == ("done", 1)


def test_run_probe_asked_to_stop_requeues_probe(model: Model) -> None:
    probe = queue_probe(model, "first_use")

    assert run_probe(probe.pk, lambda: True, on_finished=decide_waiting_methods)
    probe.refresh_from_db()
    assert (probe.state, probe.execution) == ("queued", 1)


def test_run_probe_after_database_outage_is_requeued(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_outage(*_: object) -> None:
        raise OperationalError("the database restarts")

    probe = queue_probe(model, "first_use")
    with monkeypatch.context() as patch:
        patch.setattr(probe_job, "store_exchanges", raise_outage)
        with pytest.raises(OperationalError):
            run_probe(probe.pk, on_finished=decide_waiting_methods)
    Probe.objects.update(lease_until=timezone.now() - timedelta(seconds=1))

    assert requeue_lost_probes() == (probe.pk,)
    assert run_probe(probe.pk, on_finished=decide_waiting_methods)
    probe.refresh_from_db()
    assert (probe.state, probe.execution, probe.sentence.startswith("Toolbench itself")) == ("done", 2, False)


def test_run_probe_missing_local_server_gives_no_verdict(model: Model) -> None:
    model.provider.base_url, model.provider.kind, model.provider.service = "", "local", "local-nowhere"
    model.provider.save()
    probe = queue_probe(model, "first_use")
    run_probe(probe.pk, on_finished=decide_waiting_methods)
    probe.refresh_from_db()

    assert (probe.state, probe.ok, probe.learned) == ("done", False, {})
    assert "not ready yet" in probe.sentence


def test_run_probe_in_two_workers_probes_once(model: Model, elsewhere: RunInThread) -> None:
    probe = queue_probe(model, "first_use")
    work = partial(run_probe, on_finished=decide_waiting_methods)
    with ScriptedServer(answer_echo) as provider:
        model.provider.base_url = provider.base_url
        model.provider.save()
        assert sorted(item.result() for item in [elsewhere(work, probe.pk) for _ in range(2)]) == [False, True]
        assert len(provider.seen) == 2


def test_claim_probe_takes_slot_of_provider(model: Model) -> None:
    model.provider.concurrency = 2
    model.provider.save()
    launch_run(model, trials=3)
    probe = queue_probe(model, "first_use")
    assert claim_probe(probe.pk) is not None

    (trial,) = claims.claim(model.provider_id, limit=8, worker="w")
    assert claims.claim(model.provider_id, limit=8, worker="w") == ()
    claims.release_slot(trial.id, trial.lease)
    assert len(claims.claim(model.provider_id, limit=8, worker="w")) == 1
    assert not claims.acquire_slot(model.provider_id, trial.id, lease=trial.lease)


def test_run_probe_without_free_slot_sends_nothing(model: Model) -> None:
    with ScriptedServer(answer_echo) as provider:
        model.provider.base_url, model.provider.concurrency = provider.base_url, 1
        model.provider.save()
        launch_run(model, trials=1)
        assert len(claims.claim(model.provider_id, limit=1, worker="w")) == 1
        probe = queue_probe(model, "first_use")
        stop_answers = iter([False, False, True])
        assert run_probe(probe.pk, lambda: next(stop_answers, True), on_finished=decide_waiting_methods)
        assert not provider.seen

        Trial.objects.update(state="done", lease=None)
        assert run_probe(probe.pk, on_finished=decide_waiting_methods)
        assert len(provider.seen) == 2


@pytest.mark.parametrize("error", [KeyUnavailableError("There is no key."), RuntimeError("a defect")])
def test_run_probe_failed_after_lost_lease_calls_on_finished(
    model: Model, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def lose_lease(_: object) -> None:
        Probe.objects.update(state="queued", lease=None, lease_until=None)
        raise error

    probe = queue_probe(model, "first_use")
    monkeypatch.setattr(probe_job, "load_provider_access", lose_lease)
    finished: list[int] = []

    assert run_probe(probe.pk, on_finished=finished.append)
    assert finished == [model.pk]
    probe.refresh_from_db()
    assert (probe.state, probe.sentence) == ("queued", "")
