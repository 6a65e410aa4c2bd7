import json
from dataclasses import replace

from toolbench.lab.worker.pacing.state import PaceState

FULL = PaceState(
    cap=30.0,
    rate=580.0,
    seconds=((100, 9, 1, 30), (101, 8, 0, 31)),
    sessions={"a": (3, 101.5), "b": (4, 101.0)},
    windows={"m": (5, 2.5, 30)},
    baselines={"m": (0.5, 20)},
    point=(95.0, 17, 1, 31),
    updated_at=101.5,
)


def test_state_is_the_same_after_json() -> None:
    assert PaceState.from_json(json.loads(json.dumps(FULL.to_json()))) == FULL
    assert PaceState.from_json({}) == PaceState()


def test_state_ignores_keys_of_other_versions() -> None:
    assert PaceState.from_json({"limit": 4.0, "of_another_version": 1}) == replace(PaceState(), limit=4.0)


def test_state_sums_the_last_minute_and_other_sessions() -> None:
    assert (FULL.accepted_per_minute, FULL.proven_in_flight, FULL.count_others("a")) == (17, 31, 4)
    assert FULL.rejected_share == 1 / 18
