"""Answers of simulated models without tools."""

import pytest

from toolbench.providers.simulated.knowledge.plain_answers import find_answer_without_tools


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is 17 * 3?", "51"),
        ("What is 17 times 3?", "51"),
        ("What happened between 2024-05-01 and 2024-05-03?", ""),
        (f"What is {'9' * 5000} + 1?", ""),
        (f"What is {'9' * 99} * {'9' * 99}?", str((10**99 - 1) ** 2)),
    ],
)
def test_find_answer_without_tools_calculates_numbers_of_any_length(question: str, answer: str) -> None:
    assert find_answer_without_tools(question) == answer
