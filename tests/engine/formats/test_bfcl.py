"""Test with a sample of BFCL's golden calls; `python -m benchmarks.bfcl_round_trip` uses all of them."""

from benchmarks.bfcl_round_trip import READ_MODES, count_by_format, iter_round_trips, judge_round_trips
from toolbench.engine.formats import list_format_names
from toolbench.evals.bfcl.cases import CATEGORIES, iter_cases

STRIDES = {"live_multiple": 97, "simple_python": 83}


def test_bfcl_calls_survive_round_trip_in_every_format() -> None:
    """Parse complete texts, chunks, text after prose and reasoning, and `auto`; BFCL's checker judges."""
    sample = [case for category in CATEGORIES for case in list(iter_cases([category]))[3 :: STRIDES.get(category, 71)]]
    trips = [trip for text_format in list_format_names()[:-1] for trip in iter_round_trips(sample, text_format, seed=1)]

    verdicts = judge_round_trips(trips)

    assert [
        (trip.format, trip.way, trip.case.id) for trip, is_right in zip(trips, verdicts, strict=True) if not is_right
    ] == []
    rows = count_by_format(trips, verdicts)
    assert len(rows) == len(list_format_names()) - 1
    assert all(row.case_count >= 0.9 * len(sample) for row in rows)
    assert sum(row.tried[READ_MODES.index("behind prose and reasoning")] > 0 for row in rows) > 40
