from typing import Any

from toolbench.engine.constraints.schema_dedup import deduplicate_schema

LINES = {"type": "array", "items": {"type": "string", "maxLength": 4096}, "maxItems": 256}


def replace_references(part: Any, definitions: dict[str, Any]) -> Any:
    """Return the schema with each reference to a shared definition replaced by the definition."""
    if isinstance(part, list):
        return [replace_references(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    name = str(part.get("$ref", "")).removeprefix("#/$defs/")
    if name.startswith("same"):
        return replace_references(definitions[name], definitions)
    return {key: replace_references(value, definitions) for key, value in part.items()}


def test_deduplicate_schema_shares_equal_parts_with_equal_meaning() -> None:
    closed = {"additionalProperties": False, "required": ["a"]}
    tool = {"type": "object", "properties": {"a": LINES, "b": {"type": "boolean"}}, **closed}
    more = {"type": "object", "properties": {"a": LINES}, "additionalProperties": {"$ref": "#/$defs/any1"}}
    schema = {"anyOf": [tool, {**more}, {"enum": [LINES, LINES]}, tool], "$defs": {"any1": {"anyOf": [LINES, tool]}}}
    deduplicated = deduplicate_schema(schema)
    definitions = deduplicated["$defs"]
    assert sorted(definitions) == ["any1", "same0", "same1"]
    assert deduplicated["anyOf"][0] == deduplicated["anyOf"][3] == {"$ref": "#/$defs/same1"}
    assert definitions["same1"]["properties"]["b"] == {"type": "boolean"}
    assert deduplicated["anyOf"][2] == {"enum": [LINES, LINES]}
    assert replace_references({**deduplicated, "$defs": {"any1": definitions["any1"]}}, definitions) == schema


def test_deduplicate_schema_without_equal_parts_changes_nothing() -> None:
    assert deduplicate_schema({"type": "object", "properties": {"a": LINES}}) == {
        "type": "object",
        "properties": {"a": LINES},
    }
