import json
from typing import Any

import pytest

from toolbench.engine.constraints.compiling import ConstraintOptions, compile_constraint
from toolbench.engine.constraints.schema_support import CONSTRAINTS, SizeLimits
from toolbench.engine.errors import PlanError

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "f", "parameters": {"properties": {"a": {"type": "string", "not": {}}}}},
}


@pytest.mark.parametrize(
    ("constraint", "field", "wrapped"),
    [
        ("response_format", "response_format", ["json_schema", "schema", "anyOf"]),
        ("strict", "response_format", ["json_schema", "schema", "properties", "answer", "anyOf"]),
        ("strict_tools", "tools", [0, "function", "strict"]),
        ("plain_schema", "response_format", ["json_schema", "schema", "anyOf"]),
        ("structured_outputs", "structured_outputs", ["json", "anyOf"]),
        ("tgi_grammar", "response_format", ["value", "anyOf"]),
        ("output_config", "output_config", ["format", "schema", "anyOf"]),
        ("strict_tool_use", "tools", [0, "function", "strict"]),
        ("grammar", "grammar", []),
        ("gbnf", "grammar", []),
        ("fireworks_grammar", "response_format", ["grammar"]),
        ("structured_grammar", "structured_outputs", ["grammar"]),
        ("ebnf", "ebnf", []),
    ],
)
def test_compile_constraint_sets_the_field_of_the_constraint(constraint: str, field: str, wrapped: list[Any]) -> None:
    compiled = compile_constraint([TOOL], constraint, ConstraintOptions())
    assert list(compiled.request_fields) == [field]
    part = compiled.request_fields[field]
    for step in wrapped:
        part = part[step]
    assert part
    assert compiled.grammar == (part if isinstance(part, str) else "")
    assert [dropped.keyword for dropped in compiled.dropped_keywords] == ["not"]
    json.dumps(compiled.request_fields)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_compile_constraint_with_equal_tools_returns_cached_result(constraint: str) -> None:
    first = compile_constraint([TOOL], constraint, ConstraintOptions())
    assert compile_constraint(json.loads(json.dumps([TOOL])), constraint, ConstraintOptions()) is first
    renamed = {"type": "function", "function": {**TOOL["function"], "name": "g"}}
    assert compile_constraint([renamed], constraint, ConstraintOptions()) is not first
    assert compile_constraint([TOOL], constraint, ConstraintOptions(allows_final=False)) is not first


def test_compile_constraint_result_larger_than_the_cache_is_not_kept() -> None:
    properties = {f"p{number}": {"$ref": "#/$defs/a"} for number in range(500)}
    parameters = {"properties": properties, "$defs": {"a": {"enum": [f"v{number}" for number in range(2000)]}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    compiled = compile_constraint([tool], "response_format", ConstraintOptions())
    assert compile_constraint([tool], "response_format", ConstraintOptions()) is not compiled


def test_compile_constraint_refuses_name_that_is_too_long_for_a_grammar() -> None:
    parameters = {"properties": {"a" * 2000: {"type": "null"}}, "additionalProperties": True}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    with pytest.raises(PlanError, match="too long"):
        compile_constraint([tool], "gbnf", ConstraintOptions())
    compile_constraint([tool], "grammar", ConstraintOptions())


def test_compile_constraint_ignores_prefix_of_an_older_draft() -> None:
    array = {"type": "array", "prefixItems": 5, "items": {"type": "null"}}
    parameters = {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": array}}
    compile_constraint(
        [{"type": "function", "function": {"name": "f", "parameters": parameters}}], "gbnf", ConstraintOptions()
    )


@pytest.mark.parametrize(
    ("constraint", "options"),
    [
        ("xml", ConstraintOptions()),
        ("response_format", ConstraintOptions(text_format="hermes")),
        ("gbnf", ConstraintOptions(text_format="x")),
    ],
)
def test_compile_constraint_refuses_unknown_or_unenforceable_options(
    constraint: str, options: ConstraintOptions
) -> None:
    with pytest.raises(PlanError):
        compile_constraint([TOOL], constraint, options)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("value", [10**30, -(10**30), 1e308, 10**400, 2**63, 2**63 - 1, -(2**63)])
def test_compile_constraint_accepts_schema_with_huge_bounds(constraint: str, value: float) -> None:
    bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
    properties: dict[str, Any] = {
        f"{json_type} {name}": {"type": json_type, name: value}
        for json_type in ("integer", "number")
        for name in bounds
    }
    for json_type, noun in [("string", "Length"), ("array", "Items"), ("object", "Properties")]:
        for prefix in ("min", "max"):
            properties[f"{prefix} {noun}"] = {"type": json_type, f"{prefix}{noun}": abs(value)}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": properties}}}
    compile_constraint([tool], constraint, ConstraintOptions())


@pytest.mark.parametrize("constraint", ["gbnf", "grammar"])
@pytest.mark.parametrize("text_format", ["", "hermes"])
def test_compile_constraint_limits_grammar_of_huge_limits(constraint: str, text_format: str) -> None:
    """In GBNF, a text of 10 to the 8 characters needs a grammar of 11 MB."""
    options = ConstraintOptions(text_format=text_format, limits=SizeLimits(10**8, 10**8))
    tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {}}}}}
    assert len(compile_constraint([tool], constraint, options).grammar) < 10**6


@pytest.mark.parametrize("constraint", ["response_format", "strict_tools", "gbnf"])
@pytest.mark.parametrize(
    "schema",
    [{"type": "array", "minItems": 0, "maxItems": "few"}, {"enum": 5}, {"$ref": 5}],
)
def test_compile_constraint_invalid_schema_is_a_plan_error(schema: dict[str, Any], constraint: str) -> None:
    function = {"name": "f", "parameters": {"type": "object", "properties": {"a": schema}}}
    with pytest.raises(PlanError, match="the parameters of tool f are no usable JSON Schema"):
        compile_constraint([{"type": "function", "function": function}], constraint, ConstraintOptions())
