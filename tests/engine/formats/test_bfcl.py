"""BFCL's golden calls through every format, a sample of them; `python -m benchmarks.bfcl_round_trip` does all."""

from benchmarks.bfcl_round_trip import READ_MODES, count_by_format, iter_round_trips, judge_round_trips
from toolbench.engine.formats import list_format_names
from toolbench.evals.bfcl.cases import CATEGORIES, iter_cases

EVERY = {"live_multiple": 97, "simple_python": 83}


def test_bfcl_calls_survive_round_trip_in_every_format() -> None:
    """Whole, in pieces, behind prose and reasoning, and by `auto`; judged by BFCL's own checker."""
    sample = [case for category in CATEGORIES for case in list(iter_cases([category]))[3 :: EVERY.get(category, 71)]]
    made = [trip for form in list_format_names()[:-1] for trip in iter_round_trips(sample, form, seed=1)]

    right = judge_round_trips(made)

    assert [(trip.format, trip.way, trip.case.id) for trip, good in zip(made, right, strict=True) if not good] == []
    rows = count_by_format(made, right)
    assert len(rows) == len(list_format_names()) - 1
    assert all(row.case_count >= 0.9 * len(sample) for row in rows)
    assert sum(row.tried[READ_MODES.index("behind prose and reasoning")] > 0 for row in rows) > 40
