"""Tests of rendering tools and results in the syntax of a format."""

import re
from typing import Any

import pytest

from toolbench.engine.errors import PlanError
from toolbench.engine.formats import (
    TextCall,
    list_format_names,
    parse,
    render,
    render_results,
    render_tools,
)
from toolbench.engine.tools.definitions import ToolDefinition

CALL = TextCall("get_weather", {"city": "LA"}, "abcDEF123")
TOOL = ToolDefinition(
    "get_weather",
    "The weather.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "unit": {"enum": ["C", "F"], "default": "C"},
        },
        "required": ["city"],
    },
)


@pytest.mark.parametrize("text_format", [name for name in list_format_names() if name != "auto"])
def test_render_tools_and_result_contain_name_and_content(text_format: str) -> None:
    assert "get_weather" in render_tools([TOOL], format=text_format)
    assert render_tools([], format=text_format) == ""
    assert "It rains." in render_results([(CALL, "It rains.")], format=text_format)


@pytest.mark.parametrize(
    ("text_format", "text"),
    [
        ("hermes", "<tool_response>\nrain\n</tool_response>\n<tool_response>\nrain\n</tool_response>"),
        ("llama3_json", '{"output": "rain"}\n{"output": "rain"}'),
        (
            "mistral_v2",
            '[TOOL_RESULTS] [{"name": "get_weather", "content": "rain"}, {"name": "get_weather", "content": "rain"}]'
            "[/TOOL_RESULTS]",
        ),
        ("mistral_v3", '[TOOL_RESULTS] {"content": "rain", "call_id": "abcDEF123"}[/TOOL_RESULTS]' * 2),
        ("mistral_v11", "[TOOL_RESULTS]abcDEF123[TOOL_CONTENT]rain[/TOOL_RESULTS]" * 2),
        ("mistral_v13", "[TOOL_RESULTS]rain[/TOOL_RESULTS]" * 2),
        ("deepseek_v31", "<｜tool▁output▁begin｜>rain<｜tool▁output▁end｜>" * 2),
        ("harmony", "<|start|>functions.get_weather to=assistant<|channel|>commentary<|message|>rain<|end|>" * 2),
        ("gemma4", '<|tool_response>response:get_weather{value:<|"|>rain<|"|>}<tool_response|>' * 2),
    ],
)
def test_render_results_follows_the_format(text_format: str, text: str) -> None:
    assert render_results([(CALL, "rain"), (CALL, "rain")], format=text_format) == text


def test_render_tools_declares_types_for_harmony() -> None:
    ping = ToolDefinition("ping", "", {"type": "object", "properties": {}})

    assert render_tools([TOOL, ping], format="harmony") == (
        "# Tools\n\n## functions\n\nnamespace functions {\n\n"
        "// The weather.\ntype get_weather = (_: {\n// Where.\ncity: string,\n"
        'unit?: "C" | "F", // default: "C"\n}) => any;\n\n'
        "type ping = () => any;\n\n} // namespace functions"
    )


@pytest.mark.parametrize("text_format", ["harmony", "apertus", "gigachat3", "functionary_v32"])
def test_render_tools_accepts_schema_true_and_multiline_descriptions(text_format: str) -> None:
    fields = {"a": True, "b": {"type": "object", "properties": {"c": False}, "description": "First.\nSecond."}}
    function = {"name": "f", "description": "One.\n\nTwo.", "parameters": {"type": "object", "properties": fields}}
    prompt = render_tools([{"type": "function", "function": function}], format=text_format)
    assert "// One.\n// Two.\ntype f = (_: {\n" in prompt
    assert re.search(r"a\?: any,\n *// First\.\n *// Second\.\n *b\?: \{c: any\}", prompt)


def test_render_tools_limits_depth_below_a_list_of_types() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(20):
        schema = {"type": ["array"], "items": schema}
    function = {"name": "f", "parameters": {"type": "object", "properties": {"a": schema}}}
    assert f"a?: any{'[]' * 9}\n" in render_tools([{"type": "function", "function": function}], format="apertus")


def test_render_tools_declares_unquoted_keys_for_gemma() -> None:
    ping = ToolDefinition("ping", "Says pong.", {"type": "object", "properties": {}})

    assert render_tools([ping], format="gemma4") == (
        '<|tool>declaration:ping{description:<|"|>Says pong.<|"|>,'
        'parameters:{type:<|"|>OBJECT<|"|>,properties:{}}}<tool|>'
    )


def test_render_gives_mistral_ids_of_nine_characters() -> None:
    text = render([TextCall("ping", {}, "chatcmpl-tool-0123456789abcdef"), TextCall("ping", {})], format="mistral_v3")

    assert [call.id for call in parse(text, format="mistral_v3").calls] == ["789abcdef", "call00001"]


def test_parse_with_unknown_format_raises_plan_error() -> None:
    with pytest.raises(PlanError):
        parse("text", format="esperanto")
