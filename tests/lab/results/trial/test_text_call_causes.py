"""The decisive cause of a trial and its turn."""

import pytest

from toolbench.lab.models import Trial
from toolbench.lab.results.trial.text_call_causes import get_decisive_cause

LONG_PATH = "a" * 300


@pytest.mark.parametrize(
    ("signature", "turn"),
    [
        ("no_call · happy_path · $ · turn 12", "12"),
        ("no_call · happy_path · $.x · turn 3.y · turn 2", "2"),
        (f"no_call · happy_path · $.{LONG_PATH}"[:240], ""),
        (f"no_call · happy_path · $.{LONG_PATH}"[:231] + " · turn 1", ""),
        ("no_call · happy_path · $", ""),
        ("", ""),
    ],
)
def test_get_decisive_cause_reads_turn_of_whole_signature_only(signature: str, turn: str) -> None:
    trial = Trial(run_id=1, cause="no_call", cause_signature=signature, taxonomy=3)
    cause = get_decisive_cause(trial)
    assert cause is not None
    assert (cause.row.code, cause.turn) == ("no_call", turn)


def test_get_decisive_cause_without_cause_is_none() -> None:
    assert get_decisive_cause(Trial(run_id=1)) is None
