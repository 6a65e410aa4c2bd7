"""Tests of the sentences about schema violations."""

from typing import Any

import pytest

from toolbench.engine.types import SchemaError
from toolbench.evals.data_files import read_table
from toolbench.evals.judging.messages import describe_schema_error, find_value_at_path, parse_path, render_short
from toolbench.evals.scenarios.tools import build_definition, load_state_tools

PATCH = next(tool for tool in load_state_tools() if tool.name == "state_patch")
INTENT = build_definition(read_table("intent")["tool"])


@pytest.mark.parametrize(
    ("path", "kind", "arguments", "sentence"),
    [
        ("$.ops", "type", {"ops": {}}, "$.ops is an object; state_patch takes an array."),
        ("$.ops", "type", {"ops": "[]"}, "$.ops is a text; state_patch takes an array."),
        (
            "$.ops[0].index",
            "type",
            {"ops": [{"index": 1.5}]},
            "$.ops[0].index is a number; state_patch takes a whole number.",
        ),
        ("$.ops[0]", "type", {"ops": [True]}, "$.ops[0] is true or false; state_patch takes an object."),
        ("$.ops", "type", {"ops": None}, "$.ops is null; state_patch takes an array."),
        ("$.request_id", "missing", {}, "$.request_id is missing; state_patch needs it."),
        ("$.ops[0].colour", "extra", {"ops": [{"colour": 1}]}, "$.ops[0].colour is no parameter of state_patch."),
        (
            "$.ops[0].nowhere.deep",
            "type",
            {},
            "$.ops[0].nowhere.deep is null; state_patch takes another type.",
        ),
    ],
)
def test_describe_schema_error_names_path_and_expectation(path: str, kind: str, arguments: Any, sentence: str) -> None:
    assert describe_schema_error(SchemaError(path, kind, ""), arguments, PATCH) == sentence


def test_describe_schema_error_enum_lists_allowed_values() -> None:
    sentence = describe_schema_error(SchemaError("$.workspace_id", "enum", ""), {"workspace_id": "sea"}, INTENT)
    assert sentence == '$.workspace_id is "sea"; classify_intent takes one of "mobility", "energy", "housing".'


def test_describe_schema_error_range_keeps_validator_message() -> None:
    sentence = describe_schema_error(
        SchemaError("$.confidence", "range", "the value is over 1."), {"confidence": 7}, INTENT
    )
    assert sentence == "$.confidence is 7: the value is over 1."


def test_describe_schema_error_truncates_a_long_value() -> None:
    sentence = describe_schema_error(SchemaError("$.reasoning", "range", "too long"), {"reasoning": "x" * 500}, INTENT)
    assert len(sentence) < 100


def test_parse_path_returns_keys_and_indices() -> None:
    assert parse_path('$.ops[0]["two words"].path') == ("ops", 0, "two words", "path")
    assert find_value_at_path({"ops": [{"two words": {"path": 7}}]}, parse_path('$.ops[0]["two words"].path')) == 7


@pytest.mark.parametrize("path", ["$.ops.deep", "$.ops[0]", "$.list[1]", "$.list.deep", "$.other"])
def test_find_value_at_path_without_value_returns_default(path: str) -> None:
    arguments = {"ops": "text", "list": [1]}
    assert find_value_at_path(arguments, parse_path(path)) is None
    assert find_value_at_path(arguments, parse_path(path), "default") == "default"


@pytest.mark.parametrize(("characters", "sentence"), [(58, "x" * 58 + '"'), (59, "x" * 59 + "…"), (60, "x" * 59 + "…")])
def test_render_short_truncates_at_60_characters(characters: int, sentence: str) -> None:
    assert render_short("x" * characters) == f'"{sentence}'


def test_render_short_keeps_unicode_characters() -> None:
    assert render_short({"città": "北京"}) == '{"città": "北京"}'


def test_describe_schema_error_lists_values_of_a_known_enum_only() -> None:
    error = SchemaError("$.workspace_id", "length", "it is too short.")
    assert describe_schema_error(error, {"workspace_id": ""}, INTENT) == '$.workspace_id is "": it is too short.'
    unknown = SchemaError("$.nowhere", "enum", "it is not allowed.")
    assert describe_schema_error(unknown, {"nowhere": 1}, INTENT) == "$.nowhere is 1: it is not allowed."
