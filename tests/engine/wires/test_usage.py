from typing import Any

import pytest

from toolbench.engine.messages import Usage
from toolbench.engine.wires.usage import add_usage, read_usage


def test_usage_is_read_with_its_details() -> None:
    given = {
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 6},
        "completion_tokens_details": {"reasoning_tokens": 3},
        "cost": 0.25,
    }
    assert read_usage(given) == Usage(10, 4, 6, 3, 0.25)


def test_the_other_spelling_is_read_too() -> None:
    assert read_usage({"input_tokens": 1, "output_tokens": 2}) == Usage(1, 2)


@pytest.mark.parametrize("given", [None, [], "7", 7])
def test_no_usage_object_is_no_usage(given: Any) -> None:
    assert read_usage(given) is None


def test_odd_values_count_as_not_said() -> None:
    odd = {"prompt_tokens": "7", "completion_tokens": -1, "prompt_tokens_details": [], "cost": True}
    assert read_usage(odd) == Usage()


def test_a_sum_keeps_what_nobody_said_apart_from_zero() -> None:
    total = add_usage(add_usage(Usage(), Usage(input_tokens=3, cost=0.5)), Usage(input_tokens=0, output_tokens=0))
    assert total == Usage(input_tokens=3, output_tokens=0, cost=0.5)
    assert add_usage(total, None) is total
