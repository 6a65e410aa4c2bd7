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


def build_layered_value(key_spec: KeySpec, *layers: tuple[str, Any]) -> LayeredValue:
    value = LayeredValue(key_spec)
    for name, raw_value in layers:
        value.merge_layer(name, raw_value)
    return value


def test_layered_list_element_has_origin_of_first_layer_with_it() -> None:
    value = build_layered_value(KeySpec("names", NAME_LIST, (), ""), ("a", ["x"]), ("b", ["x", "y"]))
    assert dict(value.iterate_origins()) == {"names[0]": "a", "names[1]": "b"}


def test_layered_object_replaces_leaf_and_its_origin() -> None:
    value = build_layered_value(
        KeySpec("options", OBJECT, {}, ""), ("a", {"provider": "x"}), ("b", {"provider": {"only": ["y"]}})
    )
    assert value.value == {"provider": {"only": ["y"]}}
    assert dict(value.iterate_origins()) == {"options.provider.only": "b"}


def test_layered_leaf_replaces_object_and_reports_each_lost_leaf() -> None:
    key_spec = KeySpec("options", OBJECT, {}, "")
    value = build_layered_value(key_spec, ("a", {"provider": {"only": ["y"], "order": []}}))
    overridden = value.merge_layer("b", {"provider": None})
    assert value.value == {"provider": None}
    assert [(item.key, item.by_value) for item in overridden] == [
        ("options.provider.only", None),
        ("options.provider.order", None),
    ]


def test_layered_value_null_over_default_reports_nothing() -> None:
    assert LayeredValue(KeySpec("names", NAME_LIST, (), "")).merge_layer("a", None) == []


def test_merge_objects_changes_neither_argument() -> None:
    base, patch = {"a": {"b": [1]}}, {"a": {"c": [2]}}
    result = merge_objects(base, patch)
    result["a"]["c"].append(3)
    assert (base, patch) == ({"a": {"b": [1]}}, {"a": {"c": [2]}})


def test_iterate_leaves_treats_empty_object_as_leaf() -> None:
    assert list(iterate_leaves({"a": {}, "b": {"c": 1}})) == [("a", {}), ("b.c", 1)]


def merge_twice(
    kind: KeyKind, first: Any, second: Any, default: Any = None
) -> tuple[LayeredValue, list[OverriddenSetting]]:
    value = LayeredValue(KeySpec("key", kind, default, ""))
    value.merge_layer("a", first)
    return value, value.merge_layer("b", second)


def test_layered_value_reports_setting_replaced_by_later_layer() -> None:
    value, overridden = merge_twice(TEXT, "x", "y")
    assert overridden == [OverriddenSetting("key", "a", "x", "b", "y")]
    assert (value.value, dict(value.iterate_origins())) == ("y", {"key": "b"})


def test_layered_value_reports_nothing_for_equal_setting() -> None:
    value, overridden = merge_twice(TEXT, "x", "x")
    assert overridden == []
    assert dict(value.iterate_origins()) == {"key": "b"}


def test_layered_value_reports_nothing_about_replaced_default() -> None:
    assert LayeredValue(KeySpec("key", TEXT, "x", "")).merge_layer("a", "y") == []


def test_layered_object_cleared_by_null_is_reported_once() -> None:
    value, overridden = merge_twice(OBJECT, {"x": 1, "y": {"z": 2}}, None, {})
    assert overridden == [OverriddenSetting("key", "a", {"x": 1, "y": {"z": 2}}, "b", {})]
    assert (value.value, dict(value.iterate_origins())) == ({}, {"key": "b"})


def test_layered_object_merged_with_empty_object_is_unchanged() -> None:
    value, overridden = merge_twice(OBJECT, {"x": 1}, {}, {})
    assert (value.value, overridden, dict(value.iterate_origins())) == ({"x": 1}, [], {"key.x": "a"})


def test_layered_list_cleared_by_empty_list_reports_last_layer() -> None:
    value = build_layered_value(KeySpec("key", NAME_LIST, (), ""), ("a", ["x"]), ("b", ["y"]))
    assert value.merge_layer("c", []) == [OverriddenSetting("key", "b", ("x", "y"), "c", ())]
    assert (value.value, dict(value.iterate_origins())) == ((), {"key": "c"})


def test_layered_object_reports_only_changed_leaves() -> None:
    _, overridden = merge_twice(OBJECT, {"x": 1, "y": 2, "z": 3}, {"x": 1, "y": 5}, {})
    assert overridden == [OverriddenSetting("key.y", "a", 2, "b", 5)]


@pytest.mark.parametrize(("characters", "quoted"), [(58, "x" * 58 + "'"), (59, "x" * 59 + "…")])
def test_layered_value_error_quotes_value_up_to_60_characters(characters: int, quoted: str) -> None:
    with pytest.raises(ValueError, match="is not accepted; it must be true or false") as caught:
        LayeredValue(KeySpec("key", FLAG, False, "")).merge_layer("a", "x" * characters)
    assert str(caught.value).startswith(f"'{quoted} is not accepted")


def test_merge_options_merges_every_level_and_later_value_wins() -> None:
    defaults = {"temperature": 1, "provider": {"only": ["a"], "sort": {"by": "price", "p": 1}}}
    overrides = {"provider": {"only": ["b"], "sort": {"by": "speed"}}, "top_p": 0.9}
    assert merge_options(defaults, overrides) == {
        "temperature": 1,
        "provider": {"only": ["b"], "sort": {"by": "speed", "p": 1}},
        "top_p": 0.9,
    }


@pytest.mark.parametrize("key", sorted(RESERVED_KEYS))
def test_merge_options_drops_reserved_keys_of_every_argument(key: str) -> None:
    assert merge_options({key: 1, "a": 1}, {key: 2}, {"b": {key: 3}}) == {"a": 1, "b": {key: 3}}


def test_reserved_keys_are_the_keys_set_by_the_loop() -> None:
    assert set(RESERVED_KEYS) == {"model", "messages", "tools", "tool_choice", "response_format"}


def test_merge_options_changes_neither_argument() -> None:
    defaults, overrides = {"a": {"b": 1}}, {"a": {"c": 2}}
    before = copy.deepcopy((defaults, overrides))
    merge_options(defaults, overrides)["a"]["b"] = 9
    assert (defaults, overrides) == before


def test_merge_options_treats_null_as_a_value() -> None:
    assert merge_options({"a": {"b": 1}}, {"a": None}) == {"a": None}
    assert merge_options({"a": None}, {"a": {"b": 1}}) == {"a": {"b": 1}}
