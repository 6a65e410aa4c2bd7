import asyncio

import pytest

from toolbench.providers.driver.cancellation import CancellationToken


@pytest.mark.parametrize("late", [False, True])
def test_a_cancel_ends_every_trial_that_runs_and_those_that_begin_after_it(late: bool) -> None:
    async def trial(cancel: CancellationToken) -> str:
        limit = asyncio.timeout(600)
        try:
            async with limit:
                with cancel.expire_on_cancel(limit):
                    await asyncio.Event().wait()
        except TimeoutError:
            return "ended"
        return "went on"

    async def several() -> list[str]:
        cancel = CancellationToken()
        if late:
            cancel.set()
        trials = [asyncio.create_task(trial(cancel)) for _ in range(3)]
        await asyncio.sleep(0)
        cancel.set()
        return await asyncio.gather(*trials)

    assert asyncio.run(several()) == ["ended"] * 3
