from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from toolbench.engine.constraints.allowed_answers import build_allowed_answers, build_answer_schema
from toolbench.engine.constraints.normalise_schema import MAX_PARTS, SchemaNormaliser
from toolbench.engine.constraints.schema_support import (
    GBNF_SUPPORT,
    LLGUIDANCE_SUPPORT,
    PLAIN_SCHEMA_SUPPORT,
    RESPONSE_FORMAT_SUPPORT,
    SCHEMA_SUPPORT,
    STRICT_SUPPORT,
    TGI_SUPPORT,
    SchemaSupport,
    SizeLimits,
)
from toolbench.engine.errors import PlanError

LIMITS = SizeLimits()
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


def iterate_parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
    for value in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from iterate_parts(value)


def normalise_property(
    schema: Any, support: SchemaSupport = LLGUIDANCE_SUPPORT
) -> tuple[Any, Any, list[tuple[str, str]]]:
    """Return a property `a` with this schema, normalised, the definitions, and (path, keyword) of dropped keywords."""
    normaliser = SchemaNormaliser(support, LIMITS)
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": schema}}}
    arguments = normaliser.normalise_arguments(tool, 0)
    dropped_keywords = [(dropped.path, dropped.keyword) for dropped in normaliser.dropped_keywords]
    assert {dropped.constraint for dropped in normaliser.dropped_keywords} <= {support.name}
    return arguments["properties"]["a"], normaliser.definitions, dropped_keywords


def normalise(schema: Any, support: SchemaSupport = LLGUIDANCE_SUPPORT) -> Any:
    return normalise_property(schema, support)[0]


def build_answers(parameters: Any, support: SchemaSupport = LLGUIDANCE_SUPPORT) -> Any:
    """Return the schema of all answers of one tool with these parameters."""
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    return build_answer_schema(build_allowed_answers([tool], allows_final=True, support=support, limits=LIMITS))


@pytest.mark.parametrize("support", [d for d in SCHEMA_SUPPORT.values() if "maxLength" in d.keywords])
def test_normalised_schema_limits_every_string_and_list(support: SchemaSupport) -> None:
    schema = build_answers({"properties": {"a": {"type": "string"}, "b": {"type": "array"}, "c": {}}}, support)
    jsonschema_rs.meta.validate(schema)
    for part in iterate_parts(schema):
        if part.get("type") == "string" and "enum" not in part:
            assert part["maxLength"] == min(LIMITS.max_string_length, support.max_length or LIMITS.max_string_length)
        if part.get("type") == "array":
            assert part["maxItems"] == LIMITS.max_items


def test_normalised_schema_keeps_its_own_bounds() -> None:
    assert normalise({"type": "string", "maxLength": 9, "minLength": 2}) == {
        "type": "string",
        "maxLength": 9,
        "minLength": 2,
    }
    assert normalise({"type": "array", "maxItems": 3, "items": {"type": "integer", "minimum": 1}}) == {
        "type": "array",
        "maxItems": 3,
        "items": {"type": "integer", "minimum": 1},
    }
    assert normalise({"type": "array", "minItems": 300, "items": {"type": "null"}})["maxItems"] == 300


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_normalised_union_has_no_alternative_for_false(keyword: str) -> None:
    assert normalise({keyword: [False, {"type": "null"}]}) == {"type": "null"}
    assert normalise({keyword: [False, {"type": "integer"}], "maximum": 3}) == {"type": "integer", "maximum": 3}


@pytest.mark.parametrize(
    ("schema", "values"), [({"enum": ["a"]}, ["a"]), ({"const": 1}, [1]), ({"enum": [1, None]}, [1, None])]
)
def test_normalised_enum_and_const_have_no_bounds(schema: dict[str, Any], values: list[Any]) -> None:
    assert normalise(schema) == {"enum": values}


@pytest.mark.parametrize(
    ("support", "schema", "keyword"),
    [
        (RESPONSE_FORMAT_SUPPORT, {"type": "string", "pattern": "abc"}, "pattern"),
        (RESPONSE_FORMAT_SUPPORT, {"type": "string", "format": "klingon"}, "format"),
        (RESPONSE_FORMAT_SUPPORT, {"type": "number", "minimum": 1}, "minimum"),
        (RESPONSE_FORMAT_SUPPORT, {"type": "integer", "multipleOf": 7}, "multipleOf"),
        (RESPONSE_FORMAT_SUPPORT, {"type": "array", "prefixItems": [{"type": "null"}]}, "prefixItems"),
        (RESPONSE_FORMAT_SUPPORT, {"type": "object", "patternProperties": {"^a": {}}}, "patternProperties"),
        (RESPONSE_FORMAT_SUPPORT, {"type": "string", "minLength": 5000}, "minLength"),
        (GBNF_SUPPORT, {"type": "string", "pattern": "^a$", "minLength": 1}, "minLength"),
        (GBNF_SUPPORT, {"type": "string", "pattern": r"^a([\x00\v]b)*$"}, "pattern"),
        (GBNF_SUPPORT, {"type": "object", "minProperties": 1}, "minProperties"),
        (GBNF_SUPPORT, {"type": "integer", "minimum": 5, "maximum": 3}, "maximum"),
        (RESPONSE_FORMAT_SUPPORT, {"type": "integer", "minimum": 5, "exclusiveMaximum": 5}, "exclusiveMaximum"),
        (STRICT_SUPPORT, {"type": "string", "maxLength": 9}, "maxLength"),
        (PLAIN_SCHEMA_SUPPORT, {"type": "string", "minLength": 2}, "minLength"),
        (PLAIN_SCHEMA_SUPPORT, {"type": "string", "pattern": "^a$"}, "pattern"),
        (LLGUIDANCE_SUPPORT, {"type": "string", "pattern": '^(b|[^"a]{2})$'}, "pattern"),
        (LLGUIDANCE_SUPPORT, {"type": "string", "minLength": 2**32}, "minLength"),
        (LLGUIDANCE_SUPPORT, {"type": "integer", "minimum": -(2**63)}, "minimum"),
        (LLGUIDANCE_SUPPORT, {"type": "number", "maximum": 2**63 - 1}, "maximum"),
        (LLGUIDANCE_SUPPORT, {"type": "array", "minItems": 10**30}, "minItems"),
        (LLGUIDANCE_SUPPORT, {"type": "array", "minItems": 3, "maxItems": 2}, "minItems"),
        (LLGUIDANCE_SUPPORT, {"additionalProperties": {}, "minProperties": 10**30}, "minProperties"),
        (LLGUIDANCE_SUPPORT, {"additionalProperties": {}, "minProperties": 3, "maxProperties": 2}, "minProperties"),
        (LLGUIDANCE_SUPPORT, {"type": "string", "pattern": r"^[^\d\\]$"}, "pattern"),
        (PLAIN_SCHEMA_SUPPORT, {"type": "string", "format": "uuid"}, "format"),
        (PLAIN_SCHEMA_SUPPORT, {"type": "integer", "exclusiveMinimum": 2}, "exclusiveMinimum"),
        (PLAIN_SCHEMA_SUPPORT, {"enum": ["a", None]}, "enum"),
        (TGI_SUPPORT, {"type": "integer", "minimum": 2}, "minimum"),
        (STRICT_SUPPORT, {"type": "object", "additionalProperties": {"type": "null"}}, "additionalProperties"),
        *[
            (support, {**schema, keyword: value}, keyword)
            for support in (RESPONSE_FORMAT_SUPPORT, GBNF_SUPPORT, STRICT_SUPPORT, LLGUIDANCE_SUPPORT)
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
def test_normaliser_drops_and_records_unsupported_keyword(
    support: SchemaSupport, schema: dict[str, Any], keyword: str
) -> None:
    kept, definitions, dropped = normalise_property(schema, support)
    assert ("$[0].parameters.properties.a." + keyword, keyword) in dropped
    assert not any(keyword in part and part[keyword] == schema[keyword] for part in iterate_parts([kept, definitions]))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "title": "T", "description": "d", "default": "x", "examples": ["y"], "deprecated": True},
        {"type": "string", "uniqueItems": True, "minimum": 3},
        {"type": "array", "uniqueItems": False, "items": {"type": "null"}},
    ],
)
def test_normaliser_does_not_record_keywords_without_effect(schema: dict[str, Any]) -> None:
    assert normalise_property(schema, RESPONSE_FORMAT_SUPPORT)[2] == []


def test_normalised_alternatives_keep_the_other_keywords() -> None:
    assert normalise({"type": "integer", "oneOf": [{"minimum": 5}, {"const": 1}]}) == {
        "anyOf": [{"type": "integer", "minimum": 5}, {"enum": [1]}]
    }
    assert normalise({"type": ["string", "null"], "maxLength": 3}) == {
        "anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}]
    }
    assert normalise({"type": "boolean", "nullable": True}) == {"anyOf": [{"type": "boolean"}, {"type": "null"}]}


def test_normaliser_merges_all_of_into_one_schema() -> None:
    first = {"properties": {"x": {"type": "integer", "minimum": 1}}, "required": ["x"]}
    second = {"properties": {"x": {"maximum": 9}, "y": {"type": "null"}}, "required": ["y"]}
    assert normalise({"type": "object", "allOf": [first, second]}) == {
        "type": "object",
        "properties": {"x": {"type": "integer", "minimum": 1, "maximum": 9}, "y": {"type": "null"}},
        "required": ["x", "y"],
        "additionalProperties": False,
    }
    assert normalise_property({"allOf": [{"pattern": "^a$"}, {"pattern": "^b$"}]})[2] == [
        ("$[0].parameters.properties.a.pattern", "pattern")
    ]


@pytest.mark.parametrize("support", [GBNF_SUPPORT, LLGUIDANCE_SUPPORT], ids=lambda support: support.name)
def test_normaliser_reads_counts_that_are_written_as_fractions(support: SchemaSupport) -> None:
    schema = {"type": "array", "prefixItems": [{"type": "null"}] * 3, "minItems": 1.0, "maxItems": 2.0}
    tool = {"name": "f", "parameters": {"properties": {"a": schema}, "minProperties": 1.0, "required": ["a"]}}
    normalised = SchemaNormaliser(support, LIMITS).normalise_arguments(tool, 0)
    counts = [*(normalised["properties"]["a"][name] for name in ("minItems", "maxItems"))]
    assert (counts, {*map(type, counts)}) == ([1, 2], {int})
    assert type(normalised.get("minProperties", 1)) is int


def test_normaliser_drops_enum_values_of_another_type() -> None:
    assert normalise({"type": "integer", "enum": ["1", 2, True]}) == {"enum": [2]}


def test_normaliser_replaces_references_by_their_targets() -> None:
    schema = {"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n", "minimum": 3}}}
    tool = {"name": "f", "parameters": schema}
    assert SchemaNormaliser(GBNF_SUPPORT, LIMITS).normalise_arguments(tool, 0)["properties"] == {
        "a": {"type": "integer", "minimum": 3}
    }


@pytest.mark.parametrize("support", SCHEMA_SUPPORT.values(), ids=list(SCHEMA_SUPPORT))
def test_normaliser_keeps_recursive_schema_recursive(support: SchemaSupport) -> None:
    schema = build_answers(TREE, support)
    jsonschema_rs.meta.validate(schema)
    strict = support.requires_all_keys
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
def test_normalised_reference_to_itself_allows_any_value(schema: dict[str, Any]) -> None:
    kept, definitions, _ = normalise_property(schema)
    jsonschema_rs.meta.validate({**kept, "$defs": definitions})
    assert jsonschema_rs.is_valid({**kept, "$defs": definitions}, 7)


@pytest.mark.parametrize("reference", ["#/$defs/none", "http://elsewhere.invalid/x", "other.json#/a", "#/enum/9"])
def test_normaliser_refuses_reference_without_local_target(reference: str) -> None:
    with pytest.raises(PlanError, match="tool f: "):
        normalise({"$ref": reference})


def test_normaliser_refuses_references_that_merge_into_themselves() -> None:
    schema = {"allOf": [{"$ref": "#"}, {"$ref": "#"}], "properties": {"a": {}}}
    with pytest.raises(PlanError, match="parts"):
        SchemaNormaliser(GBNF_SUPPORT, LIMITS).normalise_arguments({"name": "f", "parameters": schema}, 0)


def test_normaliser_refuses_unknown_type() -> None:
    with pytest.raises(PlanError, match="names the type 'strng'"):
        normalise({"type": ["null", "strng"]})


def test_normaliser_refuses_references_that_give_too_many_parts() -> None:
    nested_definitions = {
        f"n{index}": {"anyOf": [{"properties": {k: {"$ref": f"#/$defs/n{index + 1}"}}} for k in "xy"]}
        for index in range(20)
    }
    schema = {"$defs": {**nested_definitions, "n20": {"type": "null"}}, "properties": {"a": {"$ref": "#/$defs/n0"}}}
    with pytest.raises(PlanError, match=str(MAX_PARTS)):
        SchemaNormaliser(RESPONSE_FORMAT_SUPPORT, LIMITS).normalise_arguments({"name": "f", "parameters": schema}, 0)


@pytest.mark.parametrize("parameters", [{}, None, {"type": "object"}, {"type": "object", "properties": {}}])
def test_tool_without_parameters_accepts_empty_object(parameters: dict[str, Any] | None) -> None:
    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    assert (
        SchemaNormaliser(RESPONSE_FORMAT_SUPPORT, LIMITS).normalise_arguments(
            {"name": "f", "parameters": parameters}, 0
        )
        == empty
    )


def test_normaliser_for_strict_requires_every_key_and_allows_null() -> None:
    schema = normalise(
        {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"enum": ["a"]}}, "required": ["x"]},
        STRICT_SUPPORT,
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


def test_normalised_object_allows_other_keys_only_as_its_schema() -> None:
    named = {"type": "object", "properties": {"x": {"type": "null"}}}
    assert normalise(named)["additionalProperties"] is False
    assert normalise({**named, "additionalProperties": {"type": "integer"}})["additionalProperties"] == {
        "type": "integer"
    }
    assert "$ref" in normalise({**named, "additionalProperties": True})["additionalProperties"]
    assert "$ref" in normalise({"type": "object"})["additionalProperties"]


def test_normaliser_names_paths_with_special_characters_in_quotes() -> None:
    schema: dict[str, Any] = {"properties": {"first name": {"not": {}}}}
    assert normalise_property(schema)[2] == [('$[0].parameters.properties.a.properties["first name"].not', "not")]


def test_normalised_object_allows_the_keys_that_it_requires() -> None:
    normalised = normalise({"additionalProperties": {"type": "null"}, "minProperties": 300})
    assert (normalised["minProperties"], normalised["maxProperties"]) == (300, 300)
    names = [f"k{number}" for number in range(300)]
    assert normalise({"additionalProperties": {"type": "null"}, "required": names})["maxProperties"] == 300


@pytest.mark.parametrize("bounds", [{"minProperties": 2}, {"maxProperties": 0}])
def test_normaliser_drops_key_count_that_excludes_every_object(bounds: dict[str, int]) -> None:
    """llguidance refuses a grammar with it, so that the run would stop."""
    schema = {"properties": {"b": {"type": "null"}}, "required": ["b"], **bounds}
    (keyword,) = bounds
    normalised, _, dropped = normalise_property(schema)
    assert (keyword in normalised, dropped) == (False, [(f"$[0].parameters.properties.a.{keyword}", keyword)])


def test_normalised_union_keeps_both_one_and_true() -> None:
    assert normalise({"anyOf": [{"const": 1}, {"const": True}, {"const": 1}]}) == {
        "anyOf": [{"enum": [1]}, {"enum": [True]}]
    }
