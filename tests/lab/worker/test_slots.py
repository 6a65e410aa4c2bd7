import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any
from uuid import UUID, uuid4

from toolbench.lab.worker.slots import (
    AHEAD_SECONDS,
    MAX_UNSTORED_TRIALS,
    MAX_WAITING_TRIALS,
    SlotHints,
    Slots,
    TrialLease,
)


def in_event_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run_test() -> None:
        asyncio.run(test())

    return run_test


def make_trials(count: int) -> list[TrialLease]:
    return [TrialLease(number, uuid4()) for number in range(1, count + 1)]


def hold_all(slots: Slots, trials: list[TrialLease]) -> None:
    for trial in trials:
        slots.hold(trial)


async def start_waiting(slots: Slots, *trials: TrialLease) -> list[asyncio.Task[object]]:
    tasks: list[asyncio.Task[object]] = [asyncio.create_task(slots.wait(trial)) for trial in trials]
    await asyncio.sleep(0)
    return tasks


async def list_started(tasks: list[asyncio.Task[object]]) -> list[bool]:
    """Return which of the waiting trials have got a slot."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return [task.done() for task in tasks]


def test_slots_finished_trial_is_in_hints_until_stored() -> None:
    slots, (trial,) = Slots(), make_trials(1)
    slots.hold(trial)
    slots.mark_finished(trial.lease)
    assert slots.freed.is_set()
    assert slots.build_hints() == SlotHints((trial.lease,), (trial.lease,))
    slots.mark_stored(trial.lease)
    assert slots.build_hints() == SlotHints()


def test_slots_limit_number_of_unstored_finished_trials() -> None:
    slots, trials = Slots(), make_trials(MAX_UNSTORED_TRIALS + 1)
    leases = [trial.lease for trial in trials]
    hold_all(slots, trials)
    for lease in leases:
        slots.mark_finished(lease)
    assert slots.build_hints().finished_leases == tuple(leases[:-1])
    slots.freed.clear()
    slots.mark_stored(leases[0])
    assert slots.freed.is_set()
    assert slots.build_hints().finished_leases == tuple(leases[1:])


def test_slots_reserve_one_slot_per_returning_trial() -> None:
    slots = Slots()
    with slots.reserve(), slots.reserve():
        assert slots.build_hints() == SlotHints(reserved_slots=2)
    assert slots.build_hints() == SlotHints()


@in_event_loop
async def test_slots_waiting_trial_is_counted_after_predecessor_is_stored() -> None:
    slots, (first, second, third) = Slots(), make_trials(3)
    slots.hold(first)
    tasks = await start_waiting(slots, second, third)
    slots.mark_finished(first.lease, confirmed_at=5.0)
    assert await list_started(tasks) == [True, False]
    assert slots.build_hints() == SlotHints(unstored_leases=(first.lease,))
    assert not slots.is_counted(second.lease)
    assert slots.take_successors({first.lease}) == [second]
    slots.mark_stored(first.lease)
    assert slots.is_counted(second.lease)
    slots.mark_finished(second.lease)
    assert await list_started(tasks) == [True, True]


@in_event_loop
async def test_slots_handed_over_twice_are_counted_for_last_trial() -> None:
    slots, (first, second, third) = Slots(), make_trials(3)
    slots.hold(first)
    tasks = await start_waiting(slots, second, third)
    slots.mark_finished(first.lease)
    slots.mark_finished(second.lease)
    assert await list_started(tasks) == [True, True]
    assert slots.take_successors({first.lease, second.lease}) == [third]
    for trial in (first, second):
        slots.mark_stored(trial.lease)
    assert slots.is_counted(third.lease)


@in_event_loop
async def test_slots_named_in_hints_are_not_handed_over() -> None:
    slots, (first, second) = Slots(), make_trials(2)
    slots.hold(first)
    slots.mark_finished(first.lease)
    assert slots.build_hints().finished_leases == (first.lease,)
    tasks = await start_waiting(slots, second)
    assert await list_started(tasks) == [False]
    slots.mark_stored(first.lease)
    assert await list_started(tasks) == [False]
    tasks[0].cancel()


@in_event_loop
async def test_slots_of_outcomes_being_stored_are_not_handed_over() -> None:
    slots, (first, second) = Slots(), make_trials(2)
    slots.hold(first)
    slots.mark_finished(first.lease)
    assert slots.take_successors({first.lease}) == []
    tasks = await start_waiting(slots, second)
    assert await list_started(tasks) == [False]
    assert slots.build_hints().finished_leases == (first.lease,)
    tasks[0].cancel()


@in_event_loop
async def test_slots_named_in_hints_follow_the_successor_lease() -> None:
    slots, (first, second, third) = Slots(), make_trials(3)
    slots.hold(first)
    await start_waiting(slots, second)
    slots.mark_finished(first.lease)
    slots.take_successors({first.lease})
    slots.mark_finished(second.lease)
    assert slots.build_hints().finished_leases == (first.lease,)
    slots.mark_stored(first.lease)
    tasks = await start_waiting(slots, third)
    assert await list_started(tasks) == [False]
    assert slots.build_hints().finished_leases == (second.lease,)
    tasks[0].cancel()


@in_event_loop
async def test_slots_prefer_returning_trial_to_waiting_one() -> None:
    slots, (first, second) = Slots(), make_trials(2)
    slots.hold(first)
    tasks = await start_waiting(slots, second)
    with slots.reserve():
        slots.mark_finished(first.lease)
        assert await list_started(tasks) == [False]
        assert slots.build_hints() == SlotHints((first.lease,), (first.lease,), 1)
    assert await list_started(tasks) == [False]
    tasks[0].cancel()


@in_event_loop
async def test_slots_are_not_handed_over_at_max_unstored_trials() -> None:
    slots, trials = Slots(), make_trials(MAX_UNSTORED_TRIALS + 1)
    *held, waiting = trials
    hold_all(slots, held)
    for trial in held:
        slots.mark_finished(trial.lease)
    tasks = await start_waiting(slots, waiting)
    assert await list_started(tasks) == [False]
    slots.mark_stored(held[0].lease)
    assert await list_started(tasks) == [True]


@in_event_loop
async def test_slots_beyond_share_end_with_their_trials() -> None:
    slots, (first, second, third) = Slots(), make_trials(3)
    hold_all(slots, [first, second])
    slots.set_share(1)
    tasks = await start_waiting(slots, third)
    slots.mark_finished(first.lease)
    assert await list_started(tasks) == [False]
    assert slots.pop_waiting() is None
    assert slots.build_hints().share == 1
    slots.mark_finished(second.lease)
    assert await list_started(tasks) == [True]


@in_event_loop
async def test_slots_are_handed_over_once_the_share_rises() -> None:
    slots, (first, second, third) = Slots(), make_trials(3)
    hold_all(slots, [first, second])
    slots.set_share(1)
    tasks = await start_waiting(slots, third)
    slots.mark_finished(first.lease)
    slots.set_share(None)
    assert await list_started(tasks) == [True]


@in_event_loop
async def test_slots_left_before_the_end_are_not_handed_over() -> None:
    slots, (first, second) = Slots(), make_trials(2)
    slots.hold(first)
    slots.leave(first.lease)
    tasks = await start_waiting(slots, second)
    slots.mark_finished(first.lease)
    assert await list_started(tasks) == [False]
    assert slots.build_hints().finished_leases == ()
    tasks[0].cancel()


@in_event_loop
async def test_slots_of_lost_lease_are_not_handed_over() -> None:
    slots, (first, second, third) = Slots(), make_trials(3)
    slots.hold(first)
    tasks = await start_waiting(slots, second, third)
    slots.mark_finished(first.lease)
    slots.leave(first.lease)  # the second trial has the slot by now
    assert slots.take_successors({first.lease}) == [second]
    slots.mark_stored(first.lease)
    slots.leave(second.lease)
    slots.mark_finished(second.lease)
    assert slots.take_successors({second.lease}) == []
    assert await list_started(tasks) == [True, False]
    tasks[1].cancel()


@in_event_loop
async def test_slots_pop_waiting_returns_none_while_slot_is_reserved() -> None:
    slots, trials = Slots(), make_trials(1)
    tasks = await start_waiting(slots, *trials)
    with slots.reserve():
        assert slots.pop_waiting() is None
    assert slots.pop_waiting() is not None
    tasks[0].cancel()


@in_event_loop
async def test_slots_grant_starts_waiting_trial() -> None:
    slots, (first, second) = Slots(), make_trials(2)
    tasks = await start_waiting(slots, first, second)
    popped = slots.pop_waiting()
    assert popped is not None
    slots.restore_waiting(*popped)
    popped = slots.pop_waiting()
    assert popped is not None
    assert popped[0] == first
    slots.grant(*popped)
    assert await list_started(tasks) == [True, False]
    assert slots.is_counted(first.lease)
    slots.mark_finished(first.lease)
    assert await list_started(tasks) == [True, True]


@in_event_loop
async def test_slots_skip_waiting_trial_that_was_cancelled() -> None:
    slots, (first, second, third) = Slots(), make_trials(3)
    slots.hold(first)
    tasks = await start_waiting(slots, second, third)
    tasks[0].cancel()
    slots.mark_finished(first.lease)
    assert await list_started(tasks) == [True, True]
    assert tasks[0].cancelled()
    assert slots.take_successors({first.lease}) == [third]


def finish(slots: Slots, count: int) -> list[UUID]:
    trials = make_trials(count)
    hold_all(slots, trials)
    for trial in trials:
        slots.mark_finished(trial.lease)
    return [trial.lease for trial in trials]


@in_event_loop
async def test_slots_hints_claim_ahead_at_rate_of_finished_trials() -> None:
    now = 100.0
    slots = Slots(lambda: now)
    assert slots.build_hints(claims_ahead=True).ahead == 0
    finish(slots, 40)
    now += 1.0
    assert slots.build_hints().ahead == 0
    assert slots.build_hints(claims_ahead=True).ahead == 40 * AHEAD_SECONDS
    tasks = await start_waiting(slots, *make_trials(3))
    assert slots.build_hints(claims_ahead=True).ahead == 40 * AHEAD_SECONDS - 3
    now += 5.0
    assert slots.build_hints(claims_ahead=True).ahead == 0
    finish(slots, 4 * MAX_WAITING_TRIALS)
    assert slots.build_hints(claims_ahead=True).ahead == MAX_WAITING_TRIALS  # the three have slots now
    for task in tasks:
        task.cancel()


@in_event_loop
async def test_slots_end_of_claim_clears_freed_only_if_enough_trials_wait() -> None:
    slots = Slots(lambda: 100.0)
    finish(slots, 8)  # in at most half a second, so 16 trials should wait
    for lease in slots.build_hints().finished_leases:
        slots.mark_stored(lease)
    few = await start_waiting(slots, *make_trials(8))
    slots.end_claim()
    assert slots.freed.is_set()
    enough = await start_waiting(slots, *make_trials(1))
    slots.end_claim()
    assert not slots.freed.is_set()
    for task in (*few, *enough):
        task.cancel()


@in_event_loop
async def test_slots_end_of_claim_keeps_freed_while_slot_is_free() -> None:
    slots, (trial,) = Slots(lambda: 100.0), make_trials(1)
    slots.hold(trial)
    slots.set_share(0)  # so that no waiting trial gets the slot
    tasks = await start_waiting(slots, *make_trials(5))
    slots.mark_finished(trial.lease)
    slots.end_claim()
    assert slots.freed.is_set()
    for task in tasks:
        task.cancel()
