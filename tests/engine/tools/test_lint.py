from typing import Any

import pytest

from toolbench.engine.tools.definitions import StoredToolDefinition, ToolDefinition
from toolbench.engine.tools.lint import lint_tools


def tool(name: str = "f", description: str = "F.", **schema: Any) -> ToolDefinition:
    return StoredToolDefinition(name, description, {"type": "object", **schema})


def found(*tools: ToolDefinition) -> list[tuple[str, str]]:
    return [(finding.code, finding.path) for finding in lint_tools(tools)]


def test_a_plain_tool_has_no_findings() -> None:
    assert found(tool(properties={"a": {"type": "string", "format": "date"}}, required=["a"])) == []


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
def test_names_are_checked(name: str, codes: list[str]) -> None:
    assert found(tool(name)) == [(code, "$[0].name") for code in codes]


def test_names_of_more_than_64_and_of_more_than_128_are_told_apart() -> None:
    (strict,), (lax,) = lint_tools([tool("a" * 65)]), lint_tools([tool("a" * 129)])
    assert "OpenAI" in strict.message
    assert "anywhere" in lax.message


def test_duplicates_counts_and_bytes_are_those_of_the_whole_set() -> None:
    assert found(tool(), tool()) == [("name_duplicate", "$")]
    assert found(*(tool(f"t{n}") for n in range(129))) == [("tools_count", "$")]
    assert found(*(tool(f"t{n}") for n in range(128))) == []
    assert found(tool("big", "x" * 200_000)) == [("tools_bytes", "$")]


def test_a_missing_description_is_said() -> None:
    assert found(tool(description=" ")) == [("description_missing", "$[0]")]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"required": []}, ("required_empty", "$[0].parameters")),
        ({"required": ["x"], "properties": {"a": {}}}, ("required_unknown", "$[0].parameters")),
        ({"properties": {"a": {"type": "foo"}}}, ("schema_invalid", "$[0].parameters")),
        ({"properties": {"a": {"$ref": "#/nope"}}}, ("schema_invalid", "$[0].parameters")),
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
def test_schemas_are_checked_to_their_depths(schema: dict[str, Any], expected: tuple[str, str]) -> None:
    assert found(tool(**schema)) == [expected]


def test_a_propertys_name_is_no_keyword() -> None:
    assert found(tool(properties={"not": {"type": "string"}, "default": {"type": "string"}})) == []


@pytest.mark.parametrize("schema", [{"type": "array"}, {"properties": {}}])
def test_a_root_that_is_no_object_is_said(schema: dict[str, Any]) -> None:
    assert [f.code for f in lint_tools([ToolDefinition("f", "F.", schema)])] == ["schema_root"]


def test_a_tool_that_takes_nothing_needs_no_schema() -> None:
    assert lint_tools([ToolDefinition("f", "F.")]) == ()


def test_a_schema_nested_without_end_is_said_and_not_walked() -> None:
    schema: dict[str, Any] = {"type": "object"}
    inner = schema
    for _ in range(5000):
        inner["items"] = {}
        inner = inner["items"]
    assert [f.code for f in lint_tools([ToolDefinition("f", "F.", schema)])] == ["schema_too_deep"]


def test_tools_the_model_never_sees_are_left_out() -> None:
    assert lint_tools([StoredToolDefinition("a.b", "", exposed_to_model=False)]) == ()
