from typing import Any

import pytest

from toolbench.engine.tools.applied_schemas import count_applied_schemas

LIMIT = 1000


def build_chain(length: int, keyword: str = "anyOf") -> dict[str, Any]:
    """Return a schema in which each definition refers twice to the next one."""
    definitions: dict[str, Any] = {
        f"s{number}": {keyword: [{"$ref": f"#/$defs/s{number + 1}"}] * 2} for number in range(length)
    }
    return {"$ref": "#/$defs/s0", "$defs": {**definitions, f"s{length}": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "count"),
    [
        ({}, 1),
        (True, 0),
        ({"properties": {"a": {}, "b": {}}, "items": {}}, 1),
        ({"properties": {"a": {"anyOf": [{}, {}, {"not": {}}]}}}, 5),
        ({"if": {}, "then": {}, "else": {"allOf": [{}, {"oneOf": [{}]}]}}, 7),
        ({"dependentSchemas": {"a": {}, "b": {}}}, 3),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, 2),
        ({"$ref": "#a", "$defs": {"b": {"$anchor": "a"}}}, 2),
        ({"$ref": "#/$defs/missing"}, 1),
        ({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, 3),
    ],
)
def test_count_applied_schemas_counts_schemas_of_one_value(schema: Any, count: int) -> None:
    assert count_applied_schemas(schema, LIMIT) == count


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
def test_count_applied_schemas_doubles_at_each_link_of_chain(keyword: str) -> None:
    assert count_applied_schemas(build_chain(3, keyword), LIMIT) == 30
    assert count_applied_schemas(build_chain(200, keyword), LIMIT) == LIMIT
