import copy

import pytest

from toolbench.engine.policy.overrides import RESERVED_KEYS, merge_options


def test_objects_are_merged_at_every_depth_and_the_later_wins() -> None:
    below = {"temperature": 1, "provider": {"only": ["a"], "sort": {"by": "price", "p": 1}}}
    above = {"provider": {"only": ["b"], "sort": {"by": "speed"}}, "top_p": 0.9}
    assert merge_options(below, above) == {
        "temperature": 1,
        "provider": {"only": ["b"], "sort": {"by": "speed", "p": 1}},
        "top_p": 0.9,
    }


@pytest.mark.parametrize("key", sorted(RESERVED_KEYS))
def test_reserved_keys_are_dropped_wherever_they_come_from(key: str) -> None:
    assert merge_options({key: 1, "a": 1}, {key: 2}, {"b": {key: 3}}) == {"a": 1, "b": {key: 3}}


def test_the_reserved_keys_are_those_of_the_loop() -> None:
    assert set(RESERVED_KEYS) == {"model", "messages", "tools", "tool_choice", "response_format"}


def test_nothing_handed_in_is_changed() -> None:
    below, above = {"a": {"b": 1}}, {"a": {"c": 2}}
    before = copy.deepcopy((below, above))
    merge_options(below, above)["a"]["b"] = 9
    assert (below, above) == before


def test_null_is_a_value_like_any_other() -> None:
    assert merge_options({"a": {"b": 1}}, {"a": None}) == {"a": None}
    assert merge_options({"a": None}, {"a": {"b": 1}}) == {"a": {"b": 1}}
