"""Tools of LlamaIndex read and built by the adapter. These tests run in LlamaIndex's environment."""

import asyncio
from typing import Any

import pytest
from llama_index.core.tools import FunctionTool
from llama_index.core.tools.tool_spec.base import BaseToolSpec
from llama_index.core.workflow import Context

from tests.frameworks.inside.sample_tools import double, echo, wait
from toolbench.adapters.llama_index import build_tool, build_tools, read_tool, read_tools
from toolbench.adapters.python_tools import build_python_tool
from toolbench.engine.errors import PlanError, ToolArgumentError
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.python_functions import PythonTools, python_tool

SEARCH = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "id": {"type": "integer"}},
    "anyOf": [{"required": ["query"]}, {"required": ["id"]}],
    "additionalProperties": False,
}


def remember(context: Context, text: str) -> str:
    """Remember a text."""
    return text


class Clock(BaseToolSpec):
    """Tools of a clock."""

    spec_functions = ["tell_time", "wait"]

    def tell_time(self, zone: str = "UTC") -> str:
        """Tell the time."""
        return f"noon in {zone}"

    async def wait(self, seconds: int) -> str:
        """Wait."""
        return await wait(seconds)


def run_async(value: Any) -> Any:
    async def wait_for() -> Any:
        return await value

    return asyncio.run(wait_for())


def test_read_tool_of_a_function_has_definition_and_runs() -> None:
    read = read_tool(FunctionTool.from_defaults(double))
    assert (read.definition.name, read.definition.parameters["required"]) == ("double", ["number"])
    assert read.call({"number": 2}) == {"number": 4}
    assert not read.is_async


def test_read_tools_of_a_spec_has_sync_and_async_tools() -> None:
    tools = read_tools(Clock())
    assert list(tools.by_name) == ["tell_time", "wait"]
    assert tools.by_name["tell_time"].call({}) == "noon in UTC"
    assert run_async(tools.by_name["wait"].call({"seconds": 3})) == "waited 3"


def test_read_tool_returns_the_text_of_a_callback() -> None:
    read = read_tool(FunctionTool.from_defaults(double, callback=lambda result: f"it is {result['number']}"))
    assert read.call({"number": 2}) == "it is 4"


def test_read_tool_refuses_a_tool_that_needs_a_workflow() -> None:
    with pytest.raises(PlanError, match="context of a LlamaIndex workflow"):
        read_tool(FunctionTool.from_defaults(remember))


def test_build_tool_keeps_the_schema_of_the_definition() -> None:
    built = build_tool(build_python_tool(ToolDefinition("search", "Search.", SEARCH), echo))
    assert built.metadata.to_openai_tool()["function"]["parameters"] == SEARCH


def test_build_tools_run_sync_and_async_and_answer_in_json() -> None:
    (built,) = build_tools(PythonTools.from_functions(double))
    assert built.call(number=2).content == '{"number": 4}'
    assert run_async(built.acall(number=2)).content == '{"number": 4}'


def test_build_tool_refuses_arguments_that_break_the_schema() -> None:
    with pytest.raises(ToolArgumentError, match=r"\$\.number"):
        build_tool(python_tool(double)).call(number="two")


def test_read_tool_of_a_built_tool_equals_the_original() -> None:
    original = python_tool(double)
    read_again = read_tool(build_tool(original))
    assert read_again.definition.description == original.definition.description
    assert read_again.definition.parameters == {**original.definition.parameters, "additionalProperties": False}
    assert read_again.call({"number": 2}) == {"number": 4}
