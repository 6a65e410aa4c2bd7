"""Traces, stored in batches once each; costs of requests, stored for the budgets of providers."""

import asyncio
import json
from collections.abc import Iterator

import pytest
from django.utils import timezone

from tests.gateway.running import (
    POLL_SECONDS,
    POLL_TIMEOUT_SECONDS,
    chat_body,
    in_database,
    post,
    run,
    scripted_gateway,
)
from toolbench.gateway.directory import Directory
from toolbench.gateway.trace_writer import TraceWriter
from toolbench.lab.models import GatewayTrace, Provider
from toolbench.lab.serving.traces import write_traces
from toolbench.providers.scripted_server import json_reply, text_reply

pytestmark = pytest.mark.django_db(transaction=True)


def test_spending_counts_without_traces_and_stops_the_gateway() -> None:
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
def directory() -> Iterator[Directory]:
    directory = Directory()
    yield directory
    directory.close()


@pytest.mark.parametrize(("alias", "lost"), [("last", 0), ("x" * 101, 1)])
def test_queued_traces_are_stored_or_counted_when_the_writer_stops(directory: Directory, alias: str, lost: int) -> None:
    async def write() -> TraceWriter:
        writer = TraceWriter(directory.run)
        writer.start()
        writer.put(build_trace(alias))
        await writer.stop()
        return writer

    assert asyncio.run(write()).lost_count == lost
    assert GatewayTrace.objects.count() == 1 - lost


def test_trace_written_again_is_stored_once() -> None:
    traces = [build_trace("first"), build_trace("second")]
    write_traces(traces)
    write_traces(traces)
    assert list(GatewayTrace.objects.order_by("pk").values_list("alias", flat=True)) == ["first", "second"]
