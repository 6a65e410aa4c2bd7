from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.engine.tools.test_applied_schemas import build_deep_arguments, build_recursive_union
from toolbench.engine.errors import PlanError
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.validation import MAX_ERRORS, check_schema, list_schema_errors

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ops": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["path"]}},
        "unit": {"type": "string", "enum": ["c", "f"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
        "code": {"type": "string", "pattern": "^x"},
    },
    "required": ["ops"],
    "additionalProperties": False,
}


def list_violations(arguments: dict[str, Any], schema: dict[str, Any] = SCHEMA) -> set[tuple[str, str]]:
    return {(e.path, e.kind) for e in list_schema_errors(ToolDefinition("t", "", schema), arguments)}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"ops": [{"path": "/a"}], "unit": "c", "days": 3}, set()),
        ({}, {("$.ops", "missing")}),
        ({"ops": [{}, {}]}, {("$.ops[0].path", "missing"), ("$.ops[1].path", "missing")}),
        ({"ops": "set"}, {("$.ops", "type")}),
        ({"ops": []}, {("$.ops", "range")}),
        ({"ops": [{"path": 1}], "unit": "k"}, {("$.unit", "enum")}),
        ({"ops": [{"path": 1}], "days": 0}, {("$.days", "range")}),
        ({"ops": [{"path": 1}], "days": 2.5}, {("$.days", "type")}),
        ({"ops": [{"path": 1}], "code": "y"}, {("$.code", "other")}),
        ({"ops": [{"path": 1}], "a": 1, "b c": 2}, {("$.a", "extra"), ('$["b c"]', "extra")}),
    ],
)
def test_list_schema_errors_gives_path_and_kind_of_every_violation(
    arguments: dict[str, Any], expected: set[tuple[str, str]]
) -> None:
    assert list_violations(arguments) == expected


def test_schema_error_message_names_type_without_the_value() -> None:
    (error,) = list_schema_errors(ToolDefinition("t", "", SCHEMA), {"ops": "x" * 10_000})
    assert error.message == 'the value is not of type "array"'


def test_list_schema_errors_without_schema_is_empty() -> None:
    assert list_violations({"anything": [1]}, {}) == set()


def test_list_schema_errors_returns_max_errors_at_most() -> None:
    errors = list_schema_errors(ToolDefinition("t", "", SCHEMA), {"ops": [{}] * 1000})
    assert len(errors) == MAX_ERRORS


def test_list_schema_errors_reports_lone_surrogate() -> None:
    (error,) = list_schema_errors(ToolDefinition("t", "", SCHEMA), {"ops": [{"path": 1}], "unit": "\ud800"})
    assert (error.path, error.kind) == ("$", "other")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nope"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "#/nowhere"},
        {"pattern": "("},
        {"type": object()},
        {"type": "string", "title": "\ud800"},
    ],
    ids=["type", "remote", "dangling", "pattern", "object", "surrogate"],
)
def test_check_schema_refuses_unusable_schema(schema: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="tool t "):
        check_schema(ToolDefinition("t", "", schema))


def test_check_schema_refuses_cyclic_schema() -> None:
    cyclic: dict[str, Any] = {"type": "object"}
    cyclic["properties"] = {"a": cyclic}
    with pytest.raises(PlanError, match="no usable JSON Schema"):
        check_schema(ToolDefinition("t", "", cyclic))


def test_check_schema_error_names_path_of_invalid_type() -> None:
    invalid = {"type": "object", "properties": {"a": {"type": "objekt"}}}
    with pytest.raises(PlanError, match=r"no usable JSON Schema: \$\.properties\.a\.type: "):
        check_schema(ToolDefinition("t", "", invalid))


def test_check_schema_reads_no_file(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text("{}")
    with pytest.raises(PlanError):
        check_schema(ToolDefinition("t", "", {"$ref": (tmp_path / "schema.json").as_uri()}))


def test_check_schema_refuses_chain_of_unions_that_multiply() -> None:
    """Each link doubles the schemas that the validator tries: 30 links took hours for one value."""
    definitions: dict[str, Any] = {f"s{n}": {"anyOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(30)}
    schema = {"properties": {"a": {"$ref": "#/$defs/s0"}}, "$defs": {**definitions, "s30": {"type": "string"}}}
    with pytest.raises(PlanError, match="apply more than 10,000 schemas to one value"):
        check_schema(ToolDefinition("t", "", schema))


def test_check_schema_accepts_union_that_refers_only_to_itself() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/s"}}, "$defs": {"s": {"anyOf": [{"$ref": "#/$defs/s"}] * 20}}}
    check_schema(ToolDefinition("t", "", schema))
    assert list_violations({"a": 1}, schema) == set()


@pytest.mark.parametrize(
    ("branches", "depth", "message"),
    [
        (2, 13, "the arguments are not valid; their schema applies more than 10,000 schemas"),
        (2, 100, "the arguments cannot be checked; their schema applies more than 1,000,000 schemas"),
        (4, 100, "the arguments cannot be checked; their schema applies more than 1,000,000 schemas"),
    ],
)
def test_list_schema_errors_of_deep_recursive_union_ends_early(branches: int, depth: int, message: str) -> None:
    """With four equal branches, eight levels took eight seconds, and each further one four times as long."""
    tool = ToolDefinition("t", "", build_recursive_union(branches))
    (error,) = list_schema_errors(tool, build_deep_arguments(depth))
    assert (error.path, error.kind) == ("$", "other")
    assert error.message.startswith(message)


def test_list_schema_errors_of_shallow_recursive_union_names_the_place() -> None:
    tool = ToolDefinition("t", "", {"properties": {"b": {"type": "string"}}} | build_recursive_union(2))
    errors = list_schema_errors(tool, build_deep_arguments(4) | {"b": 1})
    assert "$.b" in {error.path for error in errors}


@pytest.mark.parametrize(("value_count", "compile_count"), [(1000, 1), (160_000, 2)])
def test_validator_larger_than_the_cache_is_not_kept(
    value_count: int, compile_count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled_schemas: list[str] = []
    compile_schema = jsonschema_rs.validator_for

    def count(schema: str, **options: Any) -> jsonschema_rs.Validator:
        compiled_schemas.append(schema)
        return compile_schema(schema, **options)

    monkeypatch.setattr(jsonschema_rs, "validator_for", count)
    tool = ToolDefinition("t", "", {"properties": {"a": {"enum": [f"v{number}" for number in range(value_count)]}}})
    assert [list_schema_errors(tool, {"a": "v1"}) for _ in range(2)] == [(), ()]
    assert len(compiled_schemas) == compile_count
