"""Writer of gateway traces: each trace is stored once, in batches, and costs are added to the provider's budget."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from django.db import OperationalError
from django.utils import timezone

from tests.factories import make_provider
from tests.gateway.running import (
    POLL_SECONDS,
    POLL_TIMEOUT_SECONDS,
    chat_body,
    in_database,
    post,
    run,
    scripted_gateway,
)
from toolbench.gateway import trace_writer
from toolbench.gateway.trace_writer import TraceWriter
from toolbench.lab.models import GatewaySpending, GatewayTrace, Provider
from toolbench.lab.serving.spending import Spending
from toolbench.lab.serving.traces import write_traces
from toolbench.lab.worker.database_thread import DatabaseThread
from toolbench.providers.scripted_server import json_reply, text_reply

pytestmark = pytest.mark.django_db(transaction=True)


def test_gateway_without_traces_counts_spending_up_to_budget() -> None:
    async def body() -> None:
        answer = text_reply("Hi").body
        assert isinstance(answer, bytes)
        paid = json_reply(json.loads(answer) | {"usage": {"prompt_tokens": 9, "completion_tokens": 1, "cost": 0.75}})
        async with scripted_gateway(paid, paid, keep_percent=0) as (gateway, _):
            await in_database(lambda: Provider.objects.update(budget_per_month=1.0))
            assert [(await post(gateway, chat_body(tools=None)))[0] for _ in range(2)] == [200, 200]
            async with asyncio.timeout(POLL_TIMEOUT_SECONDS):
                while (refused := await post(gateway, chat_body(tools=None)))[0] != 429:
                    await asyncio.sleep(POLL_SECONDS)
            assert refused[1]["error"]["code"] == "budget_spent"
            assert "has spent $1.50 of its budget of $1.00" in refused[1]["error"]["message"]
            assert not await in_database(GatewayTrace.objects.exists)

    run(body)


def build_trace(alias: str) -> GatewayTrace:
    return GatewayTrace(alias=alias, dialect="chat", at=timezone.now(), status=200, duration_ms=1.0)


@pytest.fixture
def database() -> Iterator[DatabaseThread]:
    database = DatabaseThread()
    yield database
    asyncio.run(database.close())


@pytest.mark.parametrize(("alias", "lost"), [("last", 0), ("x" * 101, 1)])
def test_trace_writer_stop_stores_or_counts_queued_traces(database: DatabaseThread, alias: str, lost: int) -> None:
    async def write() -> TraceWriter:
        writer = TraceWriter(database.run)
        writer.start()
        writer.put(build_trace(alias))
        await writer.stop()
        return writer

    assert asyncio.run(write()).lost_count == lost
    assert GatewayTrace.objects.count() == 1 - lost


def test_trace_writer_counts_refused_trace_and_stores_others(database: DatabaseThread) -> None:
    async def write() -> TraceWriter:
        writer = TraceWriter(database.run)
        for alias in ("first", "x" * 101, "third"):
            writer.put(build_trace(alias))
        await writer.stop()
        return writer

    assert asyncio.run(write()).lost_count == 1
    assert list(GatewayTrace.objects.order_by("pk").values_list("alias", flat=True)) == ["first", "third"]


class ScriptedThread:
    """Database thread that calls a function before and after each piece of work and records the work's name."""

    def __init__(
        self,
        database: DatabaseThread,
        before: Callable[[list[str]], None],
        after: Callable[[list[str]], None] = lambda calls: None,
    ) -> None:
        self._database = database
        self._before = before
        self._after = after
        self.calls: list[str] = []

    async def run(self, work: Callable[[], None]) -> None:
        assert isinstance(work, partial)
        self.calls.append(work.func.__name__)

        def call() -> None:
            self._before(self.calls)
            work()
            self._after(self.calls)

        await self._database.run(call)

    async def wait_for_calls(self, count: int) -> None:
        async with asyncio.timeout(POLL_TIMEOUT_SECONDS):
            while len(self.calls) < count:
                await asyncio.sleep(POLL_SECONDS)


@pytest.mark.parametrize("is_available", [True, False])
def test_trace_writer_stores_costs_between_two_batches(database: DatabaseThread, is_available: bool) -> None:
    def begin(calls: list[str]) -> None:
        if calls == ["write_traces"]:
            writer.put(build_trace("next"))
            writer.add_spending(provider_id, Spending(0.5, 1))
        if not is_available and calls.count("write_traces") == 1 and calls[-1] == "write_traces":
            raise OperationalError

    async def write() -> None:
        writer.put(build_trace("first"))
        writer.start()
        await thread.wait_for_calls(3)
        await writer.stop()

    provider_id = make_provider().pk
    thread = ScriptedThread(database, begin)
    writer = TraceWriter(thread.run)
    asyncio.run(write())
    assert thread.calls[:3] == ["write_traces", "add_spending", "write_traces"]
    assert (GatewaySpending.objects.get().dollars, GatewayTrace.objects.count()) == (0.5, 2)


def test_trace_writer_failure_during_stop_stores_costs_once(database: DatabaseThread) -> None:
    has_begun, may_fail = threading.Event(), threading.Event()

    def fail_once(calls: list[str]) -> None:
        if len(calls) == 1:
            has_begun.set()
            assert may_fail.wait(POLL_TIMEOUT_SECONDS)
            raise OperationalError

    async def write() -> None:
        writer.add_spending(provider_id, Spending(0.5, 1))
        writer.start()
        assert await asyncio.to_thread(has_begun.wait, POLL_TIMEOUT_SECONDS)
        stop = asyncio.create_task(writer.stop())
        await asyncio.sleep(0)  # the stop begins
        may_fail.set()
        await stop

    provider_id = make_provider().pk
    writer = TraceWriter(ScriptedThread(database, fail_once).run)
    asyncio.run(write())
    spending = GatewaySpending.objects.get()
    assert (spending.dollars, spending.known) == (0.5, 1)


def test_trace_writer_stop_stores_later_costs_after_two_failures(
    database: DatabaseThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_twice(calls: list[str]) -> None:
        if len(calls) == 1:
            writer.add_spending(provider_id, Spending(0.25, 1))  # not part of the batch that fails
        if len(calls) <= 2:
            raise OperationalError

    async def write() -> None:
        writer.add_spending(provider_id, Spending(0.5, 1))
        await writer.stop()

    monkeypatch.setattr(trace_writer, "DATABASE_RETRY_SECONDS", 0)
    provider_id = make_provider().pk
    writer = TraceWriter(ScriptedThread(database, fail_twice).run)
    asyncio.run(write())
    spending = GatewaySpending.objects.get()
    assert (spending.dollars, spending.known) == (0.75, 2)


def test_trace_writer_lost_commit_answer_adds_costs_once(database: DatabaseThread) -> None:
    def lose_first_answer(calls: list[str]) -> None:
        if len(calls) == 1:
            writer.add_spending(provider_id, Spending(0.25, 1))  # of a request that ends during the commit
            raise OperationalError

    async def write() -> None:
        writer.add_spending(provider_id, Spending(0.5, 1))
        writer.start()
        await thread.wait_for_calls(3)
        await writer.stop()

    provider_id = make_provider().pk
    thread = ScriptedThread(database, lambda calls: None, lose_first_answer)
    writer = TraceWriter(thread.run)
    asyncio.run(write())
    spending = GatewaySpending.objects.get()
    assert (spending.dollars, spending.known) == (0.75, 2)


def test_trace_writer_adds_large_bodies_in_thread(database: DatabaseThread) -> None:
    def add_bodies() -> None:
        assert threading.current_thread() is not threading.main_thread()
        trace.client_request = b"large"

    async def write() -> None:
        writer = TraceWriter(database.run)
        writer.put_large(trace, 5, add_bodies)
        writer.put(build_trace("second"))
        await writer.stop()

    trace = build_trace("first")
    asyncio.run(write())
    stored = GatewayTrace.objects.order_by("alias").values_list("alias", "client_request")
    assert [(alias, body and bytes(body)) for alias, body in stored] == [("first", b"large"), ("second", None)]


def test_trace_writer_full_queue_drops_large_bodies(database: DatabaseThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_writer, "MAX_WAITING_BYTES", 20)

    async def write() -> None:
        writer = TraceWriter(database.run)
        for trace in traces:
            writer.put_large(trace, 15, partial(setattr, trace, "client_request", b"large"))
        await writer.stop()

    traces = [build_trace("first"), build_trace("second")]
    asyncio.run(write())
    stored = GatewayTrace.objects.order_by("alias").values_list("client_request", flat=True)
    assert [body and bytes(body) for body in stored] == [b"large", None]


def test_trace_writer_full_queue_keeps_traces_without_bodies(
    database: DatabaseThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_writer, "MAX_WAITING_BYTES", 20)
    monkeypatch.setattr(trace_writer, "MAX_BATCH_BYTES", 10)

    async def write() -> TraceWriter:
        writer = TraceWriter(thread.run)
        for alias in ("first", "second", "third", "fourth"):
            trace = build_trace(alias)
            trace.client_request = b"12345678"
            writer.put(trace)
        await writer.stop()
        return writer

    thread = ScriptedThread(database, lambda calls: None)
    assert asyncio.run(write()).lost_count == 0
    stored = GatewayTrace.objects.order_by("pk").values_list("alias", "client_request")
    assert [(alias, body and bytes(body)) for alias, body in stored] == [
        ("first", b"12345678"),
        ("second", b"12345678"),
        ("third", None),
        ("fourth", None),
    ]
    assert thread.calls == ["write_traces"] * 2


def test_write_traces_twice_stores_each_trace_once() -> None:
    traces = [build_trace("first"), build_trace("second")]
    write_traces(traces)
    write_traces(traces)
    assert list(GatewayTrace.objects.order_by("pk").values_list("alias", flat=True)) == ["first", "second"]
