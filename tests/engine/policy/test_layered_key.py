import copy
from typing import Any

import pytest

from toolbench.engine.policy.keys import FLAG, NAME_LIST, OBJECT, TEXT, KeyKind, KeySpec
from toolbench.engine.policy.layered_key import (
    RESERVED_KEYS,
    LayeredValue,
    OverriddenSetting,
    iterate_leaves,
    merge_objects,
    merge_options,
)


def laid(row: KeySpec, *layers: tuple[str, Any]) -> LayeredValue:
    value = LayeredValue(row)
    for name, given in layers:
        value.merge_layer(name, given)
    return value


def test_a_list_element_belongs_to_the_layer_that_named_it_first() -> None:
    value = laid(KeySpec("names", NAME_LIST, (), ""), ("a", ["x"]), ("b", ["x", "y"]))
    assert dict(value.iterate_origins()) == {"names[0]": "a", "names[1]": "b"}


def test_a_leaf_that_becomes_an_object_gives_way() -> None:
    value = laid(KeySpec("options", OBJECT, {}, ""), ("a", {"provider": "x"}), ("b", {"provider": {"only": ["y"]}}))
    assert value.value == {"provider": {"only": ["y"]}}
    assert dict(value.iterate_origins()) == {"options.provider.only": "b"}


def test_an_object_that_becomes_a_leaf_gives_way() -> None:
    row = KeySpec("options", OBJECT, {}, "")
    value = laid(row, ("a", {"provider": {"only": ["y"], "order": []}}))
    lost = value.merge_layer("b", {"provider": None})
    assert value.value == {"provider": None}
    assert [(item.key, item.by_value) for item in lost] == [
        ("options.provider.only", None),
        ("options.provider.order", None),
    ]


def test_a_default_is_never_overridden() -> None:
    assert LayeredValue(KeySpec("names", NAME_LIST, (), "")).merge_layer("a", None) == []


def test_merging_changes_neither_side() -> None:
    under, over = {"a": {"b": [1]}}, {"a": {"c": [2]}}
    result = merge_objects(under, over)
    result["a"]["c"].append(3)
    assert (under, over) == ({"a": {"b": [1]}}, {"a": {"c": [2]}})


def test_an_empty_object_is_a_leaf() -> None:
    assert list(iterate_leaves({"a": {}, "b": {"c": 1}})) == [("a", {}), ("b.c", 1)]


def put_twice(
    kind: KeyKind, first: Any, second: Any, default: Any = None
) -> tuple[LayeredValue, list[OverriddenSetting]]:
    value = LayeredValue(KeySpec("key", kind, default, ""))
    value.merge_layer("a", first)
    return value, value.merge_layer("b", second)


def test_layered_value_reports_the_setting_a_later_layer_replaced() -> None:
    value, lost = put_twice(TEXT, "x", "y")
    assert lost == [OverriddenSetting("key", "a", "x", "b", "y")]
    assert (value.value, dict(value.iterate_origins())) == ("y", {"key": "b"})


def test_layered_value_reports_nothing_for_the_same_setting() -> None:
    value, lost = put_twice(TEXT, "x", "x")
    assert lost == []
    assert dict(value.iterate_origins()) == {"key": "b"}


def test_layered_value_reports_nothing_of_the_engines_default() -> None:
    assert LayeredValue(KeySpec("key", TEXT, "x", "")).merge_layer("a", "y") == []


def test_null_clears_an_object_and_reports_it_once() -> None:
    value, lost = put_twice(OBJECT, {"x": 1, "y": {"z": 2}}, None, {})
    assert lost == [OverriddenSetting("key", "a", {"x": 1, "y": {"z": 2}}, "b", {})]
    assert (value.value, dict(value.iterate_origins())) == ({}, {"key": "b"})


def test_an_empty_object_clears_nothing() -> None:
    value, lost = put_twice(OBJECT, {"x": 1}, {}, {})
    assert (value.value, lost, dict(value.iterate_origins())) == ({"x": 1}, [], {"key.x": "a"})


def test_an_empty_list_clears_and_names_the_last_layer_that_spoke() -> None:
    value = laid(KeySpec("key", NAME_LIST, (), ""), ("a", ["x"]), ("b", ["y"]))
    assert value.merge_layer("c", []) == [OverriddenSetting("key", "b", ("x", "y"), "c", ())]
    assert (value.value, dict(value.iterate_origins())) == ((), {"key": "c"})


def test_only_the_leaves_that_changed_are_reported() -> None:
    _, lost = put_twice(OBJECT, {"x": 1, "y": 2, "z": 3}, {"x": 1, "y": 5}, {})
    assert lost == [OverriddenSetting("key.y", "a", 2, "b", 5)]


@pytest.mark.parametrize(("characters", "shown"), [(58, "x" * 58 + "'"), (59, "x" * 59 + "…")])
def test_a_refused_value_is_shown_up_to_60_characters(characters: int, shown: str) -> None:
    with pytest.raises(ValueError, match="is not accepted; it must be true or false") as caught:
        LayeredValue(KeySpec("key", FLAG, False, "")).merge_layer("a", "x" * characters)
    assert str(caught.value).startswith(f"'{shown} is not accepted")


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
