"""Background jobs: restart after a failure, and the pace of counts."""

import asyncio

import pytest

from toolbench.lab.worker import background_jobs
from toolbench.lab.worker.background_jobs import (
    COUNT_FACTOR,
    MAX_COUNT_PAUSE_SECONDS,
    CountPacing,
    keep_running,
)


def test_keep_running_restarts_failed_job_until_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_jobs, "MIN_PAUSE_SECONDS", 0.01)

    async def session() -> list[str]:
        noted: list[str] = []

        async def job() -> None:
            raise ValueError("injected")

        async def note(name: str, error: Exception) -> None:
            noted.append(f"{name} {error}")
            if len(noted) == 3:
                task.cancel()

        task = asyncio.create_task(keep_running("a job", job, note))
        with pytest.raises(asyncio.CancelledError):
            await task
        return noted

    assert asyncio.run(session()) == ["a job injected"] * 3


class _Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("seconds", "pause"), [(0.01, COUNT_FACTOR * 0.01), (0.1, COUNT_FACTOR * 0.1), (9.0, MAX_COUNT_PAUSE_SECONDS)]
)
def test_count_pacing_is_due_after_pause_relative_to_duration(seconds: float, pause: float) -> None:
    clock = _Clock()
    pacing = CountPacing(clock)
    assert pacing.is_due
    with pacing.measure():
        clock.now += seconds
    clock.now += pause - 0.001
    assert not pacing.is_due
    clock.now += 0.002
    assert pacing.is_due
