"""Killed workers, brokers and databases: every trial is counted once, and every cell equals its trials."""

from collections.abc import Iterator

import pytest
from django.conf import settings

from tests.lab.scripted_runs import HeldAnswers
from tests.lab.stack import Stack
from tests.wait import wait_until
from toolbench.providers.scripted_server import ScriptedServer

TRIALS = 24
STEPS = 5  # of a trial without retries: three exchanges, two tools
IN_FLIGHT = 8  # trials at once
QUICK_ANSWERS = 36  # eight trials in flight have at most two answers each without an end, so six have ended


@pytest.fixture(scope="module")
def started_stack() -> Iterator[Stack]:
    stack = Stack()
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture
def stack(started_stack: Stack) -> Iterator[Stack]:
    yield started_stack
    started_stack.reset()


@pytest.fixture
def halfway() -> HeldAnswers:
    return HeldAnswers(QUICK_ANSWERS)


@pytest.fixture
def provider(halfway: HeldAnswers) -> Iterator[ScriptedServer]:
    with ScriptedServer(halfway) as scripted:
        yield scripted
        halfway.released.set()  # a failed test leaves no answer held


def launch_to_middle(stack: Stack, provider: ScriptedServer, halfway: HeldAnswers) -> int:
    """Launch a run, and return its id when six trials are done and eight wait for answers that are held.

    On a busy machine leases are lost, and trials that start again need more answers. If too few trials have ended and
    no request arrives, more answers are released.
    """
    run_id = stack.launch(provider.base_url, TRIALS)
    in_slots = "state = 'running' AND NOT backing_off"

    def is_halfway() -> bool:
        ended = stack.count("state = 'done'", run_id)
        if ended < 6 and halfway.idle_seconds > settings.LEASE_SECONDS:
            halfway.release_more(IN_FLIGHT)
        return ended >= 6 and stack.count(in_slots, run_id) == IN_FLIGHT

    wait_until(is_halfway)
    return run_id


def assert_every_trial_is_counted_once(stack: Stack, run_id: int) -> dict[str, int]:
    stack.wait_for_the_end(run_id)
    found = stack.summary(run_id)
    assert found["outcomes"] == [["done", "pass"]] * TRIALS
    assert found["passed"] == TRIALS
    assert found["cell_is_its_trials"]
    assert found["counted_steps"] == TRIALS * STEPS
    return found


def test_killed_worker_loses_no_trial_and_counts_none_twice(
    stack: Stack, provider: ScriptedServer, halfway: HeldAnswers
) -> None:
    stack.start_worker("killed")
    run_id = launch_to_middle(stack, provider, halfway)
    stack.kill("killed")
    halfway.released.set()
    stack.start_worker("next")
    found = assert_every_trial_is_counted_once(stack, run_id)
    assert found["lost"] >= 8  # a machine that is busy for longer than a lease loses more


def test_broker_killed_with_message_in_flight_leaves_working_worker(
    stack: Stack, provider: ScriptedServer, halfway: HeldAnswers
) -> None:
    stack.start_worker("hearing")
    run_id = launch_to_middle(stack, provider, halfway)
    stack.kill("valkey")
    halfway.released.set()
    stack.start_broker()
    assert_every_trial_is_counted_once(stack, run_id)
    again = stack.launch(f"{provider.base_url}/", TRIALS)
    assert_every_trial_is_counted_once(stack, again)
    assert stack.is_alive("hearing")


def test_killed_database_is_waited_for_and_no_trial_is_lost(
    stack: Stack, provider: ScriptedServer, halfway: HeldAnswers
) -> None:
    stack.start_worker("waiting")
    run_id = launch_to_middle(stack, provider, halfway)
    stack.kill_postgres()
    halfway.released.set()
    stack.start_postgres()
    assert_every_trial_is_counted_once(stack, run_id)
    assert stack.is_alive("waiting")


def test_worker_frozen_longer_than_lease_cannot_write(
    stack: Stack, provider: ScriptedServer, halfway: HeldAnswers
) -> None:
    stack.start_worker("frozen")
    run_id = launch_to_middle(stack, provider, halfway)
    stack.freeze("frozen")
    stack.start_worker("awake")
    wait_until(lambda: stack.count("execution > 1", run_id) > 0)
    stack.thaw("frozen")
    halfway.released.set()
    found = assert_every_trial_is_counted_once(stack, run_id)
    assert found["lost"] > 0
    wait_until(lambda: "lease was lost" in stack.log("frozen"))
    assert settings.LEASE_SECONDS < 10


def test_stack_reset_removes_processes_rows_and_messages_of_a_test(
    stack: Stack, provider: ScriptedServer, halfway: HeldAnswers
) -> None:
    stack.start_worker("left")
    run_id = launch_to_middle(stack, provider, halfway)
    stack.freeze("left")
    stack.freeze("scheduler")
    stack.kill("valkey")
    stack.kill_postgres()
    stack.reset()
    assert (stack.workers(), stack.count("TRUE", run_id)) == (set(), 0)
    assert stack.is_alive("valkey")
    assert stack.is_alive("scheduler")
