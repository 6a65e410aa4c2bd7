from typing import Any

import pytest

from toolbench.engine.tools.applied_schemas import FREE_SCHEMAS, ApplicationCounter, can_multiply, count_applied_schemas

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


def build_recursive_union(branches: int) -> dict[str, Any]:
    """Return a schema of objects in objects with so many equal branches for each."""
    branch = {"type": "object", "properties": {"a": {"$ref": "#/$defs/node"}}, "required": ["a"]}
    return {"$ref": "#/$defs/node", "$defs": {"node": {"anyOf": [*([branch] * branches), {"type": "string"}]}}}


def build_deep_arguments(depth: int) -> dict[str, Any]:
    arguments: Any = 1
    for _ in range(depth):
        arguments = {"a": arguments}
    return dict(arguments)


def test_application_counter_multiplies_branches_at_each_level() -> None:
    """The root, the reference and three branches are applied to the first value."""
    schema = build_recursive_union(2)
    counts = [1 + 1 + 3, 2 * (1 + 1 + 3), 4 * 5, 8 * 5]
    expected = sum(max(0, count - FREE_SCHEMAS) for count in counts)
    assert ApplicationCounter(schema).count(build_deep_arguments(3), LIMIT) == expected
    assert ApplicationCounter(schema).count(build_deep_arguments(100), LIMIT) == LIMIT


def test_application_counter_does_not_limit_the_number_of_values() -> None:
    schema = {"properties": {"a": {"type": "string"}}, "additionalProperties": {"items": {"$ref": "#"}}}
    arguments = {"b": [{"a": "x", "b": [{"a": 1}]} for _ in range(2 * LIMIT)]}
    assert ApplicationCounter(schema).count(arguments, LIMIT) == 0


def test_application_counter_gives_equal_counts_to_overlapping_calls() -> None:
    counters: list[ApplicationCounter] = []
    inner_counts: list[int] = []

    class InterruptedSchema(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            if counters:
                inner_counts.append(counters.pop().count({}, LIMIT))
            return super().get(key, default)

    counter = ApplicationCounter(InterruptedSchema(anyOf=[{}] * 2 * FREE_SCHEMAS))
    counters.append(counter)
    assert counter.count({}, LIMIT) == FREE_SCHEMAS + 1
    assert inner_counts == [FREE_SCHEMAS + 1]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"type": "string"}}}, False),
        (build_chain(20), True),
        (build_recursive_union(1), True),
        ({"properties": {"a": {"items": {"$ref": "#"}}}}, True),
    ],
)
def test_can_multiply_finds_recursion_and_repeated_references(schema: Any, expected: bool) -> None:
    assert can_multiply(schema, LIMIT) is expected


def test_can_multiply_accepts_long_chain_of_references() -> None:
    links = {f"s{number}": {"properties": {"a": {"$ref": f"#/$defs/s{number + 1}"}}} for number in range(3000)}
    assert can_multiply({"$ref": "#/$defs/s0", "$defs": links}, LIMIT)
