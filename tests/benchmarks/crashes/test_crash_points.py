import asyncio
from contextlib import suppress

from benchmarks.crashes.crash_points import SimulatedProcess, install_hooks


def test_simulated_process_killed_ends_although_cancellation_is_lost() -> None:
    process = SimulatedProcess()
    lost: list[str] = []

    async def work() -> None:
        process.kill()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        lost.append("cancellation")
        await asyncio.Event().wait()

    with install_hooks():
        assert process.run(lambda: asyncio.run(work())) is None
    assert lost == ["cancellation"]
    assert process.is_dead
