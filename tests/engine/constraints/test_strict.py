import json
from typing import Any

import jsonschema_rs
from hypothesis import given, settings
from hypothesis import strategies as st

from toolbench.engine.constraints.compiling import ConstraintOptions
from toolbench.engine.constraints.schema_support import SizeLimits
from toolbench.engine.constraints.strict import build_strict_tools, remove_added_nulls
from toolbench.engine.methods.native_strict import NativeStrictMethod
from toolbench.engine.tools.definitions import ToolDefinition

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 40},
        "days": {"type": "integer", "minimum": 1},
        "note": {"type": ["string", "null"]},
        "stops": {
            "type": "array",
            "items": {"type": "object", "properties": {"at": {"type": "string"}, "min": {"type": "integer"}}},
        },
    },
    "required": ["city"],
}
TOOL = ToolDefinition("plan", "Plan.", PARAMETERS)
ARGUMENTS = st.fixed_dictionaries(
    {"city": st.text(max_size=3)},
    optional={
        "days": st.integers(1, 9),
        "note": st.none() | st.text(max_size=3),
        "stops": st.lists(
            st.fixed_dictionaries({}, optional={"at": st.text(max_size=2), "min": st.integers()}), max_size=2
        ),
    },
)


def fill_missing_keys(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as a model writes them in strict mode: with null for every missing key."""
    stops = arguments.get("stops")
    full = [{"at": None, "min": None, **stop} for stop in stops] if stops is not None else None
    return {"days": None, "note": None, **arguments, "stops": full}


@settings(max_examples=60)
@given(arguments=ARGUMENTS)
def test_remove_added_nulls_keeps_nulls_that_the_tool_allows(arguments: dict[str, Any]) -> None:
    (strict,), _ = build_strict_tools([TOOL.to_openai()], SizeLimits())
    assert strict["function"]["strict"] is True
    sent = fill_missing_keys(arguments)
    assert jsonschema_rs.is_valid(strict["function"]["parameters"], sent)
    assert not jsonschema_rs.is_valid(strict["function"]["parameters"], {"city": "x"})
    restored = remove_added_nulls(sent, PARAMETERS)
    assert restored == {"note": None, **arguments}
    assert jsonschema_rs.is_valid(PARAMETERS, restored)


def test_remove_added_nulls_follows_references_and_unions() -> None:
    place = {"type": "object", "properties": {"street": {"type": "string"}}}
    tree = {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}, "size": {}}, "required": ["size"]}
    properties: dict[str, Any] = {
        "unit": {"$ref": "#/$defs/unit", "default": "c"},
        "other_unit": {"allOf": [{"$ref": "#/$defs/unit"}]},
        "home": {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "null"}]},
        "stops": {"type": "array", "items": {"$ref": "#/$defs/place"}},
        "tree": {"$ref": "#/$defs/tree"},
        "free": {},
    }
    definitions = {"unit": {"type": "string", "enum": ["c", "f"]}, "place": place, "tree": tree}
    schema = {"type": "object", "properties": properties, "$defs": definitions}
    sent = {
        "unit": None,
        "other_unit": None,
        "home": {"street": None},
        "stops": [{"street": None}, {"street": "x"}],
        "tree": {"size": None, "left": {"size": 1, "left": None}},
        "free": None,
    }
    assert remove_added_nulls(sent, schema) == {
        "home": {},
        "stops": [{}, {"street": "x"}],
        "tree": {"size": None, "left": {"size": 1}},
        "free": None,
    }
    assert remove_added_nulls(dict.fromkeys(properties), schema) == {"home": None, "free": None}


def test_remove_added_nulls_returns_for_deep_recursive_arguments() -> None:
    tree = {"anyOf": [{"$ref": "#/$defs/leaf"}, {"$ref": "#/$defs/node"}]}
    properties = {"next": tree, "size": {"type": "integer"}}
    schema = {"$defs": {name: {"type": "object", "properties": properties} for name in ("leaf", "node")}, **tree}
    sent: dict[str, Any] = {"size": None}
    expected: dict[str, Any] = {}
    for _ in range(60):
        sent, expected = {"next": sent, "size": None}, {"next": expected}
    assert remove_added_nulls(sent, schema) == expected


def test_native_strict_method_parses_calls_without_added_nulls() -> None:
    call_method = NativeStrictMethod("strict_tools", ConstraintOptions())
    arguments = json.dumps(fill_missing_keys({"city": "Oslo"}))
    call = {"id": "c1", "type": "function", "function": {"name": "plan", "arguments": arguments}}
    broken = {**call, "id": "c2", "function": {"name": "plan", "arguments": '{"city": null'}}
    parsed = call_method.parse_answer({"role": "assistant", "content": None, "tool_calls": [call, broken]}, [TOOL])
    assert json.loads(parsed.calls[0]["function"]["arguments"]) == {"city": "Oslo", "note": None}
    assert parsed.calls[1] == broken


def test_native_strict_method_sends_strict_tools_and_choice() -> None:
    sent = NativeStrictMethod("strict_tools", ConstraintOptions()).prepare_body(
        {"messages": []}, [TOOL.to_openai()], "required"
    )
    assert sent["tool_choice"] == "required"
    assert sent["tools"][0]["function"]["parameters"]["required"] == ["city", "days", "note", "stops"]
    assert NativeStrictMethod("strict_tools", ConstraintOptions()).prepare_body({"messages": []}, [], "auto") == {
        "messages": []
    }


def test_build_strict_tools_keeps_descriptions() -> None:
    unit = {"type": "string", "enum": ["c", "f"], "description": "The unit."}
    properties = {
        "city": {"type": "string", "description": "Such as Oslo."},
        "units": {"type": "array", "items": unit, "description": "Several."},
        "unit": unit,
        "tree": {"$ref": "#", "description": "OpenAI refuses it beside a reference."},
    }
    parameters = {"type": "object", "description": "All.", "properties": properties, "required": ["city"]}
    (strict,), _ = build_strict_tools([ToolDefinition("f", "F.", parameters).to_openai()], SizeLimits())
    sent = strict["function"]["parameters"]
    assert sent["description"] == "All."
    assert sent["properties"]["city"] == properties["city"]
    assert sent["properties"]["unit"] == {
        "anyOf": [{"enum": ["c", "f"]}, {"type": "null"}],
        "description": "The unit.",
    }
    units = sent["properties"]["units"]
    assert (units["description"], units["anyOf"][0]["items"]["description"]) == ("Several.", "The unit.")
    assert "description" not in str(sent["properties"]["tree"])


def test_build_strict_tools_drops_description_that_is_no_text() -> None:
    parameters = {"type": "object", "properties": {"city": {"type": "string", "description": {"en": "A city."}}}}
    (strict,), _ = build_strict_tools([ToolDefinition("f", "F.", parameters).to_openai()], SizeLimits())
    assert "description" not in str(strict["function"]["parameters"])


def test_build_strict_tools_adds_no_second_null() -> None:
    options = [{"type": "null", "description": "Unknown."}, {"type": "integer"}]
    parameters = {"type": "object", "properties": {"days": {"anyOf": options}}}
    (strict,), _ = build_strict_tools([ToolDefinition("f", "F.", parameters).to_openai()], SizeLimits())
    assert strict["function"]["parameters"]["properties"]["days"] == {"anyOf": options}


def test_build_strict_tools_sends_no_definitions_that_are_not_used() -> None:
    (strict,), _ = build_strict_tools([TOOL.to_openai()], SizeLimits())
    assert "$defs" not in strict["function"]["parameters"]


def test_build_strict_tools_keeps_root_union_and_reports_it() -> None:
    union = {"anyOf": [{"type": "object", "properties": {key: {"type": "null"}}} for key in "ab"]}
    tool = ToolDefinition("f", "F.", union).to_openai()
    assert build_strict_tools([tool], SizeLimits())[0] == [tool]
    (change,) = NativeStrictMethod("strict_tools", ConstraintOptions()).list_dropped_keywords([tool], "auto")
    assert (change.name, change.path, change.after) == ("constraint_strict", "$[0].parameters", "sent without strict")


def test_remove_added_nulls_follows_reference_to_root() -> None:
    schema = {"type": "object", "properties": {"size": {"type": "integer"}, "next": {"$ref": "#"}}}
    assert remove_added_nulls({"next": {"size": None}}, schema) == {"next": {}}


def test_remove_added_nulls_keeps_null_of_schema_that_refers_to_itself() -> None:
    """Twenty references in each other once made this endless."""
    definitions = {
        "all": {"allOf": [{"$ref": "#/$defs/all"}] * 20},
        "text": {"allOf": [{"$ref": "#/$defs/outer"}] * 20},
        "outer": {"allOf": [{"$ref": "#/$defs/text"}], "type": "string"},
    }
    properties = {name: {"$ref": f"#/$defs/{name}"} for name in definitions}
    schema = {"type": "object", "properties": properties, "$defs": definitions}
    assert remove_added_nulls(dict.fromkeys(definitions), schema) == {"all": None}
