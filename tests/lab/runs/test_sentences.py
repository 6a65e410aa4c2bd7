"""Sentences about added and queued trials: singular, plural and thousands."""

import pytest

from toolbench.lab.runs.sentences import describe_added, describe_resumed, describe_retried


@pytest.mark.parametrize(
    ("sentence", "start"),
    [
        (describe_retried(1), "1 trial with infrastructure errors is queued again."),
        (describe_retried(1200), "1,200 trials with infrastructure errors are queued again."),
        (describe_resumed(1), "1 cancelled trial is queued again."),
        (describe_resumed(0), "0 cancelled trials are queued again."),
        (describe_added(1), "1 trial added; it is marked as added manually."),
        (describe_added(1000), "1,000 trials added; they are marked as added manually."),
    ],
)
def test_sentence_agrees_with_number_of_trials(sentence: str, start: str) -> None:
    assert sentence.startswith(start)
