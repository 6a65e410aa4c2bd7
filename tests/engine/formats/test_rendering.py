"""What a prompt shows of tools and results, in a format's own words."""

import re

import pytest

from toolbench.engine.errors import PlanError
from toolbench.engine.formats import (
    TextCall,
    list_format_names,
    parse,
    render,
    render_result,
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


@pytest.mark.parametrize("form", [name for name in list_format_names() if name != "auto"])
def test_prompt_contains_tool_name_and_result_contains_content(form: str) -> None:
    assert "get_weather" in render_tools([TOOL], format=form)
    assert render_tools([], format=form) == ""
    assert "It rains." in render_result(CALL, "It rains.", format=form)


@pytest.mark.parametrize(
    ("form", "written"),
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
def test_render_results_follows_the_format(form: str, written: str) -> None:
    assert render_results([(CALL, "rain"), (CALL, "rain")], format=form) == written


def test_harmony_declares_tools_as_types() -> None:
    ping = ToolDefinition("ping", "", {"type": "object", "properties": {}})

    assert render_tools([TOOL, ping], format="harmony") == (
        "# Tools\n\n## functions\n\nnamespace functions {\n\n"
        "// The weather.\ntype get_weather = (_: {\n// Where.\ncity: string,\n"
        'unit?: "C" | "F", // default: "C"\n}) => any;\n\n'
        "type ping = () => any;\n\n} // namespace functions"
    )


@pytest.mark.parametrize("form", ["harmony", "apertus", "gigachat3", "functionary_v32"])
def test_types_accept_schema_true_and_multiline_descriptions(form: str) -> None:
    fields = {"a": True, "b": {"type": "object", "properties": {"c": False}, "description": "First.\nSecond."}}
    function = {"name": "f", "description": "One.\n\nTwo.", "parameters": {"type": "object", "properties": fields}}
    told = render_tools([{"type": "function", "function": function}], format=form)
    assert "// One.\n// Two.\ntype f = (_: {\n" in told
    assert re.search(r"a\?: any,\n *// First\.\n *// Second\.\n *b\?: \{c: any\}", told)


def test_gemma_declares_tools_with_unquoted_keys() -> None:
    ping = ToolDefinition("ping", "Says pong.", {"type": "object", "properties": {}})

    assert render_tools([ping], format="gemma4") == (
        '<|tool>declaration:ping{description:<|"|>Says pong.<|"|>,'
        'parameters:{type:<|"|>OBJECT<|"|>,properties:{}}}<tool|>'
    )


def test_mistral_ids_have_nine_characters() -> None:
    written = render(
        [TextCall("ping", {}, "chatcmpl-tool-0123456789abcdef"), TextCall("ping", {})], format="mistral_v3"
    )

    assert [call.id for call in parse(written, format="mistral_v3").calls] == ["789abcdef", "call00001"]


def test_unknown_format_raises_plan_error() -> None:
    with pytest.raises(PlanError):
        parse("text", format="esperanto")
