"""References inside one schema."""

import pytest

from toolbench.engine.constraints.references import SchemaReferences
from toolbench.engine.errors import PlanError

SCHEMA = {"anyOf": [{"type": "string"}, {"type": "null"}]}


def test_schema_references_find_an_item_of_a_list() -> None:
    assert SchemaReferences(SCHEMA, "echo").find_target("#/anyOf/1") == {"type": "null"}


@pytest.mark.parametrize("name", ["next", "default", "const", "$ref"])
def test_schema_references_find_recursion_in_property_of_any_name(name: str) -> None:
    schema = {"type": "object", "properties": {name: {"$ref": "#"}}}
    assert SchemaReferences(schema, "echo").is_recursive("#")


def test_schema_references_ignore_references_in_data() -> None:
    schema = {"properties": {"a": {"default": {"$ref": "#"}, "enum": [{"$ref": "#/missing"}]}}}
    assert not SchemaReferences(schema, "echo").is_recursive("#")


@pytest.mark.parametrize("index", ["2", "²", "%C2%B9", "9" * 5_000])
def test_schema_references_refuse_what_is_no_index_of_the_list(index: str) -> None:
    with pytest.raises(PlanError, match="has nothing at"):
        SchemaReferences(SCHEMA, "echo").find_target(f"#/anyOf/{index}")
