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


def test_pace_state_json_round_trip_is_lossless() -> None:
    assert PaceState.from_json(json.loads(json.dumps(FULL.to_json()))) == FULL
    assert PaceState.from_json({}) == PaceState()


def test_pace_state_from_json_ignores_unknown_keys() -> None:
    assert PaceState.from_json({"limit": 4.0, "of_another_version": 1}) == replace(PaceState(), limit=4.0)


def test_pace_state_sums_last_minute_and_other_sessions() -> None:
    assert (FULL.accepted_per_minute, FULL.proven_in_flight, FULL.count_others("a")) == (17, 31, 4)
    assert FULL.rejected_share == 1 / 18
