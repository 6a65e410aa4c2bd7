"""Random rejections, in virtual time and step by step."""

from dataclasses import replace
from random import Random

import pytest

from benchmarks.adaptive.hidden_limits import HiddenLimits
from benchmarks.adaptive.simulation import SimulatedWorkers
from toolbench.lab.worker.pacing.controller import adjust
from toolbench.lab.worker.pacing.state import PaceReport, PaceSettings, PaceState, Rejection
from toolbench.lab.worker.pacing.steady_rejections import are_rejections_steady, learn_steady_share, note_low_load

SETTINGS = PaceSettings(adaptive=True, max_concurrency=8)
NOW = 1_000_000_000.0
QUIET = PaceState(latency=1.0, answered_peak=8)


def reject(in_flight: int = 2, *, answers: int = 0, wait_seconds: float | None = None) -> PaceReport:
    rejection = Rejection(in_flight, 0.1, wait_seconds)
    return PaceReport("a", peak=in_flight, sent=1, answers=answers, rejections=(rejection,))


@pytest.mark.parametrize("percent", [5, 15, 30])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_adjust_uses_an_endpoint_that_rejects_at_random(percent: int, seed: int) -> None:
    limits = HiddenLimits(10**6, 10**6, random_percent=percent, random=Random(seed))
    workers = SimulatedWorkers(limits, SETTINGS, lambda generator, _: generator.uniform(0.5, 1.5))
    workers.run(400)
    late_limits = [limit for seconds, limit, _ in workers.history if seconds > 350]
    assert sum(late_limits) / len(late_limits) >= 6


def test_note_low_load_counts_rejections_with_an_answer_between() -> None:
    state = note_low_load(QUIET, reject(), NOW)
    state = note_low_load(state, reject(), NOW + 5)
    assert state.low_load_rejections == (NOW,)
    late_answer = note_low_load(state, PaceReport("a", peak=2, answers=1), NOW + 1)
    assert note_low_load(late_answer, reject(), NOW + 6).low_load_rejections == (NOW,)
    answered = note_low_load(state, PaceReport("a", peak=2, answers=1), NOW + 5)
    assert note_low_load(answered, reject(), NOW + 6).low_load_rejections == (NOW, NOW + 6)


def test_note_low_load_ignores_high_load_and_requested_waits() -> None:
    state = note_low_load(QUIET, reject(), NOW)
    assert note_low_load(state, reject(5), NOW + 5).low_load_rejections == ()
    assert note_low_load(QUIET, reject(wait_seconds=2.0), NOW).low_load_rejections == ()


def test_learn_steady_share_needs_time_answers_and_moderate_share() -> None:
    times = (NOW - 30, NOW - 20, NOW)
    seconds = ((int(NOW) - 30, 16, 4, 2),)
    state = replace(QUIET, limit=2.0, rate=12.0, cap=2.0, low_load_rejections=times, seconds=seconds)
    learned = learn_steady_share(state, NOW)
    assert (learned.steady_share, learned.limit, learned.rate, learned.cap) == (0.2, 8.0, None, None)
    assert learned.steady_until > NOW
    for change in (
        {"low_load_rejections": times[:2]},
        {"low_load_rejections": (NOW - 9, NOW - 5, NOW)},
        {"seconds": ((int(NOW) - 30, 8, 2, 2),)},
        {"seconds": ((int(NOW) - 30, 100, 4, 2),)},
        {"seconds": ((int(NOW) - 30, 16, 20, 2),)},
    ):
        assert learn_steady_share(replace(state, **change), NOW).steady_share == 0


def test_adjust_lowers_limits_after_more_rejections_than_steady_ones() -> None:
    state = PaceState(
        updated_at=NOW - 0.5, limit=8.0, steady_share=0.2, steady_until=NOW + 60, seconds=((int(NOW) - 9, 80, 24, 8),)
    )
    assert are_rejections_steady(state, NOW)
    assert adjust(state, reject(8, answers=1), SETTINGS, now=NOW).overloaded_at == 0
    crowded = replace(state, seconds=((int(NOW) - 9, 50, 54, 8),))
    assert not are_rejections_steady(crowded, NOW)
    assert adjust(crowded, reject(8, answers=1), SETTINGS, now=NOW).limit < 8
    assert not are_rejections_steady(state, NOW + 60)
