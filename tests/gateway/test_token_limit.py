"""Limit of requests with wrong tokens per client address."""

import asyncio

import pytest

from toolbench.gateway import token_limit
from toolbench.gateway.request import GatewayError
from toolbench.gateway.token_limit import WrongTokenLimit


class Clock:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        return self.seconds


def test_wrong_token_limit_refuses_address_until_minute_ends() -> None:
    clock = Clock(600.0)
    limit = WrongTokenLimit(2, clock)
    for _ in range(2):
        limit.check("a")
        limit.count("a")
    clock.seconds = 615.5
    with pytest.raises(GatewayError) as raised:
        limit.check("a")
    assert (raised.value.status, raised.value.code, raised.value.retry_after) == (429, "too_many_wrong_tokens", 45)
    limit.check("b")
    clock.seconds = 660.0
    limit.check("a")


def test_wrong_token_limit_forgets_oldest_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_limit, "MAX_ADDRESSES", 2)
    limit = WrongTokenLimit(1, Clock(600.0))
    for address in ("a", "b", "c"):
        limit.count(address)
    limit.check("a")  # the oldest address was forgotten
    with pytest.raises(GatewayError):
        limit.check("c")


def test_wrong_token_limit_look_up_that_waits_too_long_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_limit, "MAX_WAIT_SECONDS", 0.01)

    async def look_up_twice() -> None:
        limit = WrongTokenLimit(1, Clock(600.0))
        async with limit.serialise_look_ups("a"), limit.serialise_look_ups("b"):
            with pytest.raises(GatewayError) as raised:
                async with limit.serialise_look_ups("a"):
                    pytest.fail("two look-ups of one address at once")
        assert (raised.value.status, raised.value.code) == (503, "database_unavailable")
        async with limit.serialise_look_ups("a"):
            pass

    asyncio.run(look_up_twice())
