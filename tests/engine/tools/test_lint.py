from typing import Any

import pytest

from toolbench.engine.tools.definitions import StoredToolDefinition, ToolDefinition
from toolbench.engine.tools.lint import lint_tools


def build_tool(name: str = "f", description: str = "F.", **schema: Any) -> ToolDefinition:
    return StoredToolDefinition(name, description, {"type": "object", **schema})


def list_findings(*tools: ToolDefinition) -> list[tuple[str, str]]:
    return [(finding.code, finding.path) for finding in lint_tools(tools)]


def test_lint_tools_of_simple_tool_has_no_findings() -> None:
    assert list_findings(build_tool(properties={"a": {"type": "string", "format": "date"}}, required=["a"])) == []


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("a.b", ["name_dot"]),
        ("a b", ["name_characters"]),
        ("ä", ["name_characters"]),
        ("", ["name_empty"]),
        ("a" * 64, []),
        ("a" * 65, ["name_length"]),
        ("a" * 129, ["name_length"]),
    ],
)
def test_lint_tools_checks_names(name: str, codes: list[str]) -> None:
    assert list_findings(build_tool(name)) == [(code, "$[0].name") for code in codes]


def test_lint_tools_distinguishes_names_over_64_and_over_128() -> None:
    (strict,), (lax,) = lint_tools([build_tool("a" * 65)]), lint_tools([build_tool("a" * 129)])
    assert "OpenAI" in strict.message
    assert "no known endpoint" in lax.message


def test_lint_tools_checks_duplicates_count_and_bytes_of_the_set() -> None:
    assert list_findings(build_tool(), build_tool()) == [("name_duplicate", "$")]
    assert list_findings(*(build_tool(f"t{n}") for n in range(129))) == [("tools_count", "$")]
    assert list_findings(*(build_tool(f"t{n}") for n in range(128))) == []
    assert list_findings(build_tool("big", "x" * 200_000)) == [("tools_bytes", "$")]


def test_lint_tools_reports_missing_description() -> None:
    assert list_findings(build_tool(description=" ")) == [("description_missing", "$[0]")]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"required": []}, ("required_empty", "$[0].parameters")),
        ({"required": ["x"], "properties": {"a": {}}}, ("required_unknown", "$[0].parameters")),
        ({"properties": {"a": {"type": "foo"}}}, ("schema_invalid", "$[0].parameters")),
        ({"properties": {"a": {"$ref": "#/nope"}}}, ("schema_invalid", "$[0].parameters")),
        ({"properties": {"a": {"$ref": "http://127.0.0.1:9/a"}}}, ("schema_invalid", "$[0].parameters")),
        ({"properties": {"a": {"pattern": "("}}}, ("schema_invalid", "$[0].parameters")),
        ({"properties": {"a": {"format": "klingon"}}}, ("format_not_portable", "$[0].parameters.properties.a.format")),
        (
            {"properties": {"a": {"items": {"not": {}}}}},
            ("keyword_not_portable", "$[0].parameters.properties.a.items.not"),
        ),
        (
            {"properties": {"a": {"anyOf": [{"uniqueItems": True}]}}},
            ("keyword_not_portable", "$[0].parameters.properties.a.anyOf[0].uniqueItems"),
        ),
    ],
)
def test_lint_tools_checks_nested_schemas(schema: dict[str, Any], expected: tuple[str, str]) -> None:
    assert list_findings(build_tool(**schema)) == [expected]


def test_lint_tools_does_not_write_references_out() -> None:
    definitions: dict[str, Any] = {
        f"d{level}": {"properties": {key: {"$ref": f"#/$defs/d{level + 1}"} for key in "ab"}} for level in range(60)
    }
    schema: dict[str, Any] = {"$ref": "#/$defs/d0", "$defs": {**definitions, "d60": {"type": "null"}}}
    findings = list_findings(build_tool(**schema))
    assert {code for code, _ in findings} == {"keyword_not_portable"}


def test_lint_tools_ignores_values_of_keywords_of_other_drafts() -> None:
    schema: dict[str, Any] = {"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": 5, "$defs": ["x"]}
    assert list_findings(build_tool(**schema)) == [("keyword_not_portable", "$[0].parameters.prefixItems")]


def test_lint_tools_does_not_take_property_name_for_keyword() -> None:
    assert list_findings(build_tool(properties={"not": {"type": "string"}, "default": {"type": "string"}})) == []


@pytest.mark.parametrize("schema", [{"type": "array"}, {"properties": {}}])
def test_lint_tools_reports_root_that_is_no_object(schema: dict[str, Any]) -> None:
    assert [f.code for f in lint_tools([ToolDefinition("f", "F.", schema)])] == ["schema_root"]


def test_lint_tools_accepts_tool_without_schema() -> None:
    assert lint_tools([ToolDefinition("f", "F.")]) == ()


def test_lint_tools_reports_too_deep_schema_without_recursion() -> None:
    schema: dict[str, Any] = {"type": "object"}
    inner = schema
    for _ in range(5000):
        inner["items"] = {}
        inner = inner["items"]
    assert [f.code for f in lint_tools([ToolDefinition("f", "F.", schema)])] == ["schema_too_deep"]


def test_lint_tools_ignores_tools_hidden_from_the_model() -> None:
    assert lint_tools([StoredToolDefinition("a.b", "", exposed_to_model=False)]) == ()
