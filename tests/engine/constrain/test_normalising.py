from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from toolbench.engine.constrain.answers import answers_of, as_schema
from toolbench.engine.constrain.dialects import DIALECTS, GBNF, LLGUIDANCE, PLAIN, SCHEMA, STRICT, TGI, Dialect, Limits
from toolbench.engine.constrain.normalising import MOST_PARTS, Normaliser
from toolbench.engine.errors import PlanError

LIMITS = Limits()
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/node"}},
    "required": ["root"],
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["name"],
        }
    },
}


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
    for value in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from parts(value)


def held(schema: Any, dialect: Dialect = LLGUIDANCE) -> tuple[Any, Any, list[tuple[str, str]]]:
    """What becomes of a property `a` with this schema; the definitions; (path, keyword) of what was dropped."""
    normaliser = Normaliser(dialect, LIMITS)
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": schema}}}
    arguments = normaliser.arguments(tool, 0)
    told = [(dropped.path, dropped.keyword) for dropped in normaliser.dropped]
    assert {dropped.dialect for dropped in normaliser.dropped} <= {dialect.name}
    return arguments["properties"]["a"], normaliser.definitions, told


def of(schema: Any, dialect: Dialect = LLGUIDANCE) -> Any:
    return held(schema, dialect)[0]


def whole(parameters: Any, dialect: Dialect = LLGUIDANCE) -> Any:
    """The schema of every answer."""
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    return as_schema(answers_of([tool], final=True, dialect=dialect, limits=LIMITS))


@pytest.mark.parametrize("dialect", [d for d in DIALECTS.values() if "maxLength" in d.keeps])
def test_every_string_and_list_has_an_end(dialect: Dialect) -> None:
    schema = whole({"properties": {"a": {"type": "string"}, "b": {"type": "array"}, "c": {}}}, dialect)
    jsonschema_rs.meta.validate(schema)
    for part in parts(schema):
        if part.get("type") == "string" and "enum" not in part:
            assert part["maxLength"] == min(LIMITS.max_string, dialect.longest or LIMITS.max_string)
        if part.get("type") == "array":
            assert part["maxItems"] == LIMITS.max_items


def test_the_tools_own_bounds_are_kept() -> None:
    assert of({"type": "string", "maxLength": 9, "minLength": 2}) == {"type": "string", "maxLength": 9, "minLength": 2}
    assert of({"type": "array", "maxItems": 3, "items": {"type": "integer", "minimum": 1}}) == {
        "type": "array",
        "maxItems": 3,
        "items": {"type": "integer", "minimum": 1},
    }
    assert of({"type": "array", "minItems": 300, "items": {"type": "null"}})["maxItems"] == 300


@pytest.mark.parametrize(
    ("schema", "fixed"), [({"enum": ["a"]}, ["a"]), ({"const": 1}, [1]), ({"enum": [1, None]}, [1, None])]
)
def test_what_ends_by_itself_needs_no_bound(schema: dict[str, Any], fixed: list[Any]) -> None:
    assert of(schema) == {"enum": fixed}


@pytest.mark.parametrize(
    ("dialect", "schema", "keyword"),
    [
        (SCHEMA, {"type": "string", "pattern": "abc"}, "pattern"),
        (SCHEMA, {"type": "string", "format": "klingon"}, "format"),
        (SCHEMA, {"type": "number", "minimum": 1}, "minimum"),
        (SCHEMA, {"type": "integer", "multipleOf": 7}, "multipleOf"),
        (SCHEMA, {"type": "array", "prefixItems": [{"type": "null"}]}, "prefixItems"),
        (SCHEMA, {"type": "object", "patternProperties": {"^a": {}}}, "patternProperties"),
        (SCHEMA, {"type": "string", "minLength": 5000}, "minLength"),
        (GBNF, {"type": "string", "pattern": "^a$", "minLength": 1}, "minLength"),
        (GBNF, {"type": "object", "minProperties": 1}, "minProperties"),
        (STRICT, {"type": "string", "maxLength": 9}, "maxLength"),
        (PLAIN, {"type": "string", "minLength": 2}, "minLength"),
        (PLAIN, {"type": "string", "pattern": "^a$"}, "pattern"),
        (LLGUIDANCE, {"type": "string", "pattern": '^(b|[^"a]{2})$'}, "pattern"),
        (LLGUIDANCE, {"type": "string", "pattern": r"^[^\d\\]$"}, "pattern"),
        (PLAIN, {"type": "string", "format": "uuid"}, "format"),
        (PLAIN, {"type": "integer", "exclusiveMinimum": 2}, "exclusiveMinimum"),
        (PLAIN, {"enum": ["a", None]}, "enum"),
        (TGI, {"type": "integer", "minimum": 2}, "minimum"),
        (STRICT, {"type": "object", "additionalProperties": {"type": "null"}}, "additionalProperties"),
        *[
            (dialect, {**schema, keyword: value}, keyword)
            for dialect in (SCHEMA, GBNF, STRICT, LLGUIDANCE)
            for schema, keyword, value in [
                ({"type": "string"}, "pattern", "(?=a)b"),
                ({"type": "string"}, "pattern", r"(a)\1"),
                ({"type": "string"}, "contentEncoding", "base64"),
                ({"type": "string"}, "not", {"const": "x"}),
                ({"type": "string"}, "if", {"minLength": 1}),
                ({"type": "array"}, "uniqueItems", True),
                ({"type": "array"}, "contains", {"type": "null"}),
                ({"type": "object"}, "propertyNames", {"maxLength": 3}),
                ({"type": "object"}, "dependentRequired", {"a": ["b"]}),
            ]
        ],
    ],
)
def test_a_keyword_that_the_dialect_does_not_hold_is_left_out_and_named(
    dialect: Dialect, schema: dict[str, Any], keyword: str
) -> None:
    kept, definitions, dropped = held(schema, dialect)
    assert ("$[0].parameters.properties.a." + keyword, keyword) in dropped
    assert not any(keyword in part and part[keyword] == schema[keyword] for part in parts([kept, definitions]))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "title": "T", "description": "d", "default": "x", "examples": ["y"], "deprecated": True},
        {"type": "string", "uniqueItems": True, "minimum": 3},
        {"type": "array", "uniqueItems": False, "items": {"type": "null"}},
    ],
)
def test_what_holds_nothing_is_not_missed(schema: dict[str, Any]) -> None:
    assert held(schema, SCHEMA)[2] == []


def test_alternatives_keep_what_stands_beside_them() -> None:
    assert of({"type": "integer", "oneOf": [{"minimum": 5}, {"const": 1}]}) == {
        "anyOf": [{"type": "integer", "minimum": 5}, {"enum": [1]}]
    }
    assert of({"type": ["string", "null"], "maxLength": 3}) == {
        "anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}]
    }
    assert of({"type": "boolean", "nullable": True}) == {"anyOf": [{"type": "boolean"}, {"type": "null"}]}


def test_parts_that_must_all_hold_become_one() -> None:
    one = {"properties": {"x": {"type": "integer", "minimum": 1}}, "required": ["x"]}
    other = {"properties": {"x": {"maximum": 9}, "y": {"type": "null"}}, "required": ["y"]}
    assert of({"type": "object", "allOf": [one, other]}) == {
        "type": "object",
        "properties": {"x": {"type": "integer", "minimum": 1, "maximum": 9}, "y": {"type": "null"}},
        "required": ["x", "y"],
        "additionalProperties": False,
    }
    assert held({"allOf": [{"pattern": "^a$"}, {"pattern": "^b$"}]})[2] == [
        ("$[0].parameters.properties.a.pattern", "pattern")
    ]


def test_values_of_another_type_than_the_schemas_are_left_out_of_an_enum() -> None:
    assert of({"type": "integer", "enum": ["1", 2, True]}) == {"enum": [2]}


def test_references_are_written_out() -> None:
    schema = {"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n", "minimum": 3}}}
    tool = {"name": "f", "parameters": schema}
    assert Normaliser(GBNF, LIMITS).arguments(tool, 0)["properties"] == {"a": {"type": "integer", "minimum": 3}}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=list(DIALECTS))
def test_a_recursive_type_stays_recursive(dialect: Dialect) -> None:
    schema = whole(TREE, dialect)
    jsonschema_rs.meta.validate(schema)
    strict = dialect.strict
    leaf = {"name": "leaf", **({"children": None} if strict else {})}
    good = {"name": "f", "arguments": {"root": {"name": "a", "children": [{"name": "b", "children": [leaf]}]}}}
    bad = {"name": "f", "arguments": {"root": {"name": "a", "children": [{"children": [leaf]}]}}}
    assert [jsonschema_rs.is_valid(schema, answer) for answer in (good, bad)] == [True, False]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/properties/a"},
        {"anyOf": [{"$ref": "#/properties/a"}, {"type": "integer"}]},
        {"allOf": [{"$ref": "#/properties/a"}]},
    ],
)
def test_a_reference_that_leads_only_to_itself_ends(schema: dict[str, Any]) -> None:
    kept, definitions, _ = held(schema)
    jsonschema_rs.meta.validate({**kept, "$defs": definitions})
    assert jsonschema_rs.is_valid({**kept, "$defs": definitions}, 7)


@pytest.mark.parametrize("reference", ["#/$defs/none", "http://elsewhere.invalid/x", "other.json#/a", "#/enum/9"])
def test_a_reference_that_leads_outside_or_nowhere_is_a_schema_error(reference: str) -> None:
    with pytest.raises(PlanError, match="tool f: "):
        of({"$ref": reference})


def test_a_type_that_json_does_not_have_is_a_schema_error() -> None:
    with pytest.raises(PlanError, match="names the type 'strng'"):
        of({"type": ["null", "strng"]})


def test_references_that_multiply_without_measure_are_refused() -> None:
    doubled = {
        f"n{at}": {"anyOf": [{"properties": {k: {"$ref": f"#/$defs/n{at + 1}"}}} for k in "xy"]} for at in range(20)
    }
    schema = {"$defs": {**doubled, "n20": {"type": "null"}}, "properties": {"a": {"$ref": "#/$defs/n0"}}}
    with pytest.raises(PlanError, match=str(MOST_PARTS)):
        Normaliser(SCHEMA, LIMITS).arguments({"name": "f", "parameters": schema}, 0)


@pytest.mark.parametrize("parameters", [{}, None, {"type": "object"}, {"type": "object", "properties": {}}])
def test_a_tool_without_arguments_takes_an_empty_object(parameters: dict[str, Any] | None) -> None:
    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    assert Normaliser(SCHEMA, LIMITS).arguments({"name": "f", "parameters": parameters}, 0) == empty


def test_strict_requires_every_key_and_takes_null_for_what_is_optional() -> None:
    schema = of(
        {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"enum": ["a"]}}, "required": ["x"]}, STRICT
    )
    assert schema == {
        "anyOf": [
            {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"anyOf": [{"enum": ["a"]}, {"type": "null"}]}},
                "required": ["x", "y"],
                "additionalProperties": False,
            },
            {"type": "null"},
        ]
    }


def test_an_object_may_have_other_keys_where_its_schema_says_so() -> None:
    named = {"type": "object", "properties": {"x": {"type": "null"}}}
    assert of(named)["additionalProperties"] is False
    assert of({**named, "additionalProperties": {"type": "integer"}})["additionalProperties"] == {"type": "integer"}
    assert "$ref" in of({**named, "additionalProperties": True})["additionalProperties"]
    assert "$ref" in of({"type": "object"})["additionalProperties"]
