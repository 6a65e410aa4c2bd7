from typing import Any

from toolbench.engine.policy.keys import OBJECT, WORDS, KeyRow
from toolbench.engine.policy.layering import LayeredValue, leaves, merged


def laid(row: KeyRow, *layers: tuple[str, Any]) -> LayeredValue:
    value = LayeredValue(row)
    for name, given in layers:
        value.put(name, given)
    return value


def test_a_list_element_belongs_to_the_layer_that_named_it_first() -> None:
    value = laid(KeyRow("names", WORDS, (), ""), ("a", ["x"]), ("b", ["x", "y"]))
    assert dict(value.origins()) == {"names[0]": "a", "names[1]": "b"}


def test_a_leaf_that_becomes_an_object_gives_way() -> None:
    value = laid(KeyRow("options", OBJECT, {}, ""), ("a", {"provider": "x"}), ("b", {"provider": {"only": ["y"]}}))
    assert value.value == {"provider": {"only": ["y"]}}
    assert dict(value.origins()) == {"options.provider.only": "b"}


def test_an_object_that_becomes_a_leaf_gives_way() -> None:
    row = KeyRow("options", OBJECT, {}, "")
    value = laid(row, ("a", {"provider": {"only": ["y"], "order": []}}))
    lost = value.put("b", {"provider": None})
    assert value.value == {"provider": None}
    assert [(one.key, one.by_value) for one in lost] == [
        ("options.provider.only", None),
        ("options.provider.order", None),
    ]


def test_a_default_is_never_overridden() -> None:
    assert LayeredValue(KeyRow("names", WORDS, (), "")).put("a", None) == []


def test_merging_changes_neither_side() -> None:
    under, over = {"a": {"b": [1]}}, {"a": {"c": [2]}}
    result = merged(under, over)
    result["a"]["c"].append(3)
    assert (under, over) == ({"a": {"b": [1]}}, {"a": {"c": [2]}})


def test_an_empty_object_is_a_leaf() -> None:
    assert list(leaves({"a": {}, "b": {"c": 1}})) == [("a", {}), ("b.c", 1)]
