"""Values that requests share: refreshed in the background, and kept while the database does not answer."""

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


class Scene:
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


def run_scene(body: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        await body(Scene())

    asyncio.run(run())


def test_requests_at_once_share_one_read() -> None:
    async def body(scene: Scene) -> None:
        assert await asyncio.gather(*(scene.cache.get() for _ in range(20))) == [1] * 20
        assert scene.read.calls == 1

    run_scene(body)


def test_value_is_refreshed_before_it_is_too_old_and_no_request_waits() -> None:
    async def body(scene: Scene) -> None:
        await scene.cache.get()
        await scene.pass_time(REFRESH_SECONDS / 2)
        assert (await scene.cache.get(), scene.read.calls) == (1, 1)
        scene.read.permission.clear()
        await scene.pass_time(REFRESH_SECONDS)
        assert await scene.cache.get() == 1  # the read is under way and does not end
        scene.read.permission.set()
        await scene.pass_time(0)
        assert (await scene.cache.get(), scene.read.calls) == (2, 2)

    run_scene(body)


def test_request_waits_for_the_refresh_of_an_old_value() -> None:
    async def body(scene: Scene) -> None:
        await scene.cache.get()
        await scene.pass_time(MAX_AGE_SECONDS + 1)
        assert await scene.cache.get() == 2

    run_scene(body)


def test_value_is_kept_while_the_database_is_away_but_not_for_ever() -> None:
    async def body(scene: Scene) -> None:
        await scene.cache.get()
        scene.read.is_failing = True
        await scene.pass_time(MAX_OUTAGE_SECONDS - 1)
        assert await scene.cache.get() == 1
        await scene.pass_time(2)
        with pytest.raises(GatewayError) as raised:
            await scene.cache.get()
        assert (raised.value.status, raised.value.retry_after) == (503, cached_read.RETRY_AFTER_SECONDS)
        scene.read.is_failing = False
        await scene.pass_time(DATABASE_RETRY_SECONDS)
        assert await scene.cache.get() == scene.read.calls

    run_scene(body)


def test_failed_read_is_not_repeated_by_every_request() -> None:
    async def body(scene: Scene) -> None:
        scene.read.is_failing = True
        for _ in range(5):
            with pytest.raises(GatewayError):
                await scene.cache.get()
        assert scene.read.calls == 2  # a read is tried twice, since the connection may have been closed

    run_scene(body)


def test_failed_reads_of_one_outage_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def body(scene: Scene) -> None:
        for is_failing in (True, True, False, True, True):
            scene.read.is_failing = is_failing
            await scene.pass_time(MAX_OUTAGE_SECONDS + 1)
            await asyncio.gather(scene.cache.get(), return_exceptions=True)

    run_scene(body)
    assert [record.levelname for record in caplog.records if record.name == cached_read.__name__] == ["WARNING"] * 2


def test_request_does_not_wait_for_a_read_that_hangs() -> None:
    async def body(scene: Scene) -> None:
        await scene.cache.get()
        scene.read.permission.clear()
        await scene.pass_time(MAX_AGE_SECONDS + 1)
        waiting = asyncio.create_task(scene.cache.get())
        await scene.pass_time(0)  # it waits for the read
        await scene.pass_time(cached_read.MAX_WAIT_SECONDS)
        late = asyncio.create_task(scene.cache.get())
        await scene.pass_time(0)
        assert (late.done(), await late) == (True, 1)  # the read began long ago
        scene.read.permission.set()
        assert await waiting == 2

    run_scene(body)


@pytest.mark.parametrize("age", [None, MAX_OUTAGE_SECONDS + 1])
def test_request_waits_longer_for_a_value_while_there_is_none(age: float | None) -> None:
    async def body(scene: Scene) -> None:
        if age is not None:
            await scene.cache.get()
            await scene.pass_time(age)
        scene.read.permission.clear()
        first = asyncio.create_task(scene.cache.get())
        await scene.pass_time(FIRST_WAIT_SECONDS - 1)
        second = asyncio.create_task(scene.cache.get())
        await scene.pass_time(0)
        scene.read.permission.set()
        assert (await first, await second) == (scene.read.calls, scene.read.calls)
        assert scene.read.calls == (1 if age is None else 2)

    run_scene(body)
