"""Costs of requests, stored in batches for the budgets of providers."""

import asyncio
import json

import pytest

from tests.gateway.running import (
    POLL_SECONDS,
    POLL_TIMEOUT_SECONDS,
    chat_body,
    in_database,
    post,
    run,
    scripted_gateway,
)
from toolbench.lab.models import GatewayTrace, Provider
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
