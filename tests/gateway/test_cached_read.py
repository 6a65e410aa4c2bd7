"""Cached values that requests share: refreshed in the background, kept while the database does not answer."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from django.db import OperationalError

from toolbench.gateway import cached_read
from toolbench.gateway.cached_read import MAX_AGE_SECONDS, MAX_OUTAGE_SECONDS, REFRESH_SECONDS, CachedRead
from toolbench.gateway.request import GatewayError
from toolbench.lab.worker.database_thread import DATABASE_RETRY_SECONDS

FIRST_WAIT_SECONDS = 30.0


class ScriptedRead:
    """Read whose value is the number of its calls; it waits for `permission` and can fail."""

    def __init__(self) -> None:
        self.calls = 0
        self.is_failing = False
        self.permission = asyncio.Event()
        self.permission.set()

    async def __call__(self) -> int:
        self.calls += 1
        call = self.calls
        await self.permission.wait()
        if self.is_failing:
            raise OperationalError("gone")
        return call


class CacheSetup:
    """Cache with a scripted read and a clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.read = ScriptedRead()
        self.cache = CachedRead(self.read, max_first_wait_seconds=FIRST_WAIT_SECONDS, clock=lambda: self.now)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, and let tasks that are ready run."""
        self.now += seconds
        for _ in range(10):
            await asyncio.sleep(0)


def run_with_cache(body: Callable[[CacheSetup], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        await body(CacheSetup())

    asyncio.run(run())


def test_cached_read_concurrent_requests_share_one_read() -> None:
    async def body(setup: CacheSetup) -> None:
        assert await asyncio.gather(*(setup.cache.get() for _ in range(20))) == [1] * 20
        assert setup.read.calls == 1

    run_with_cache(body)


def test_cached_read_refreshes_aging_value_without_waiting() -> None:
    async def body(setup: CacheSetup) -> None:
        await setup.cache.get()
        await setup.pass_time(REFRESH_SECONDS / 2)
        assert (await setup.cache.get(), setup.read.calls) == (1, 1)
        setup.read.permission.clear()
        await setup.pass_time(REFRESH_SECONDS)
        assert await setup.cache.get() == 1  # the read is under way and does not end
        setup.read.permission.set()
        await setup.pass_time(0)
        assert (await setup.cache.get(), setup.read.calls) == (2, 2)

    run_with_cache(body)


def test_cached_read_waits_for_refresh_of_expired_value() -> None:
    async def body(setup: CacheSetup) -> None:
        await setup.cache.get()
        await setup.pass_time(MAX_AGE_SECONDS + 1)
        assert await setup.cache.get() == 2

    run_with_cache(body)


def test_cached_read_keeps_value_for_limited_time_in_outage() -> None:
    async def body(setup: CacheSetup) -> None:
        await setup.cache.get()
        setup.read.is_failing = True
        await setup.pass_time(MAX_OUTAGE_SECONDS - 1)
        assert await setup.cache.get() == 1
        await setup.pass_time(2)
        with pytest.raises(GatewayError) as raised:
            await setup.cache.get()
        assert (raised.value.status, raised.value.retry_after) == (503, cached_read.RETRY_AFTER_SECONDS)
        setup.read.is_failing = False
        await setup.pass_time(DATABASE_RETRY_SECONDS)
        assert await setup.cache.get() == setup.read.calls

    run_with_cache(body)


def test_cached_read_does_not_repeat_failed_read_per_request() -> None:
    async def body(setup: CacheSetup) -> None:
        setup.read.is_failing = True
        for _ in range(5):
            with pytest.raises(GatewayError):
                await setup.cache.get()
        assert setup.read.calls == 2  # a read is tried twice, since the connection may have been closed

    run_with_cache(body)


def test_cached_read_logs_one_warning_per_outage(caplog: pytest.LogCaptureFixture) -> None:
    async def body(setup: CacheSetup) -> None:
        for is_failing in (True, True, False, True, True):
            setup.read.is_failing = is_failing
            await setup.pass_time(MAX_OUTAGE_SECONDS + 1)
            await asyncio.gather(setup.cache.get(), return_exceptions=True)

    run_with_cache(body)
    assert [record.levelname for record in caplog.records if record.name == cached_read.__name__] == ["WARNING"] * 2


def test_cached_read_does_not_wait_for_hanging_read() -> None:
    async def body(setup: CacheSetup) -> None:
        await setup.cache.get()
        setup.read.permission.clear()
        await setup.pass_time(MAX_AGE_SECONDS + 1)
        waiting = asyncio.create_task(setup.cache.get())
        await setup.pass_time(0)  # it waits for the read
        await setup.pass_time(cached_read.MAX_WAIT_SECONDS)
        late = asyncio.create_task(setup.cache.get())
        await setup.pass_time(0)
        assert (late.done(), await late) == (True, 1)  # the read began long ago
        setup.read.permission.set()
        assert await waiting == 2

    run_with_cache(body)


@pytest.mark.parametrize("age", [None, MAX_OUTAGE_SECONDS + 1])
def test_cached_read_without_value_waits_longer(age: float | None) -> None:
    async def body(setup: CacheSetup) -> None:
        if age is not None:
            await setup.cache.get()
            await setup.pass_time(age)
        setup.read.permission.clear()
        first = asyncio.create_task(setup.cache.get())
        await setup.pass_time(FIRST_WAIT_SECONDS - 1)
        second = asyncio.create_task(setup.cache.get())
        await setup.pass_time(0)
        setup.read.permission.set()
        assert (await first, await second) == (setup.read.calls, setup.read.calls)
        assert setup.read.calls == (1 if age is None else 2)

    run_with_cache(body)
