import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from benchmarks.crashes.virtual_loop import VirtualTimeLoop, run_in_virtual_time


def make_loop(times: list[float]) -> VirtualTimeLoop:
    return VirtualTimeLoop(lambda function: function, times.append)


def test_virtual_time_loop_skips_sleeps() -> None:
    times: list[float] = []

    async def sleep_long() -> float:
        await asyncio.gather(asyncio.sleep(3600), asyncio.sleep(7200))
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(make_loop(times), sleep_long()) >= 7200
    assert any(3600 <= now < 7200 for now in times)


def test_virtual_time_loop_stops_clock_while_thread_works() -> None:
    ended = threading.Event()

    async def work() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as pool:
            future = loop.run_in_executor(pool, ended.wait)
            sleeping = asyncio.ensure_future(asyncio.sleep(10))
            await asyncio.sleep(0)
            ended.set()
            await future
            worked_until = loop.time()
        await sleeping
        return worked_until, loop.time()

    worked_until, slept_until = run_in_virtual_time(make_loop([]), work())
    assert worked_until == 0
    assert slept_until >= 10
