"""A job that fails is started again, until it is cancelled."""

import asyncio

import pytest

from toolbench.lab.worker import background_jobs
from toolbench.lab.worker.background_jobs import keep_running


def test_keep_running_stops_when_it_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
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
