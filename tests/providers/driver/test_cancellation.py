import asyncio

import pytest

from toolbench.providers.driver.cancellation import CancellationToken


@pytest.mark.parametrize("late", [False, True])
def test_cancellation_token_ends_running_and_later_trials(late: bool) -> None:
    async def run_trial(cancel: CancellationToken) -> str:
        limit = asyncio.timeout(600)
        try:
            async with limit:
                with cancel.expire_on_cancel(limit):
                    await asyncio.Event().wait()
        except TimeoutError:
            return "ended"
        return "went on"

    async def run_trials() -> list[str]:
        cancel = CancellationToken()
        if late:
            cancel.set()
        trials = [asyncio.create_task(run_trial(cancel)) for _ in range(3)]
        await asyncio.sleep(0)
        cancel.set()
        return await asyncio.gather(*trials)

    assert asyncio.run(run_trials()) == ["ended"] * 3
