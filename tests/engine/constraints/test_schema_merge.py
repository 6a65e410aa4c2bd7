"""Merging of two schemas into one that requires what both require."""

from typing import Any

import pytest

from toolbench.engine.constraints.schema_merge import merge_schemas


@pytest.mark.parametrize(
    ("first_types", "second_types", "merged_types"),
    [
        ("integer", "number", "integer"),
        (["number", "null"], ["integer", "string"], "integer"),
        (["integer", "number"], "integer", "integer"),
        (["integer", "number", "null"], "null", "null"),
        (["integer", "string"], ["number", "string"], ["string", "integer"]),
    ],
)
def test_merge_schemas_keeps_the_types_that_both_allow(first_types: Any, second_types: Any, merged_types: Any) -> None:
    dropped: list[tuple[str, Any]] = []
    merged = merge_schemas({"type": first_types}, {"type": second_types}, lambda *item: dropped.append(item))
    assert (merged, dropped) == ({"type": merged_types}, [])


def test_merge_schemas_drops_numeric_types_that_the_other_schema_lacks() -> None:
    dropped: list[tuple[str, Any]] = []
    numeric = {"type": ["integer", "number"]}
    assert merge_schemas(numeric, {"type": "string"}, lambda *item: dropped.append(item)) == numeric
    assert dropped == [("type", "string")]
