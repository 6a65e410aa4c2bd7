from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.transforms import apply_tools
from toolbench.engine.types import JsonObject

STRIP = "openai_tools_strip_function_descriptions"


def test_strip_descriptions_keeps_those_of_parameters() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": "kept"}}}
    tools = [ToolDefinition("f", "gone", schema).to_openai()]
    stripped, changes = apply_tools(tools, [STRIP])
    assert stripped == [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    assert [(c.path, c.before, c.after) for c in changes] == [("$[0].function.description", '"gone"', "")]
    assert "description" in tools[0]["function"]


def test_strip_descriptions_keeps_tools_without_description() -> None:
    tools: list[JsonObject] = [{"type": "function", "function": {"name": "f"}}, {"type": "builtin"}]
    assert apply_tools(tools, [STRIP]) == (tools, ())
