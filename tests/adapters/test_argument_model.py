"""Pydantic models with the JSON Schema of a tool."""

import pytest
from pydantic import ValidationError

from toolbench.adapters.argument_model import build_argument_model, build_object_schema
from toolbench.engine.tools.definitions import ToolDefinition

SEARCH = ToolDefinition(
    "search",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string", "minLength": 2}},
        "anyOf": [{"required": ["query"]}, {"required": ["id"]}],
    },
)


def test_build_argument_model_has_the_schema_of_its_tool() -> None:
    assert build_argument_model(SEARCH).model_json_schema() == SEARCH.parameters
    assert build_argument_model(SEARCH).model_json_schema(ref_template="#/{model}") == SEARCH.parameters


def test_build_argument_model_shares_no_schema_between_tools() -> None:
    other = build_argument_model(ToolDefinition("ping"))
    assert build_argument_model(SEARCH).model_json_schema() != other.model_json_schema()


def test_build_argument_model_keeps_valid_arguments() -> None:
    model = build_argument_model(SEARCH)
    assert model.model_validate({"query": "tea", "limit": 5}).model_dump() == {"query": "tea", "limit": 5}


@pytest.mark.parametrize("arguments", [{}, {"query": "t"}, {"query": 5}])
def test_build_argument_model_refuses_arguments_that_break_the_schema(arguments: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=r"\$"):
        build_argument_model(SEARCH).model_validate(arguments)


def test_build_object_schema_is_a_copy_with_type_and_properties() -> None:
    schema = build_object_schema(SEARCH)
    schema["properties"]["query"]["type"] = "integer"
    assert SEARCH.parameters["properties"]["query"]["type"] == "string"
    assert build_object_schema(ToolDefinition("ping")) == {"type": "object", "properties": {}}
