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


def run(value: Any) -> Any:
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
    assert run(tools.by_name["wait"].call({"seconds": 3})) == "waited 3"


def test_read_tool_returns_the_text_that_a_callback_made() -> None:
    read = read_tool(FunctionTool.from_defaults(double, callback=lambda result: f"it is {result['number']}"))
    assert read.call({"number": 2}) == "it is 4"


def test_read_tool_that_needs_a_workflow_is_refused() -> None:
    with pytest.raises(PlanError, match="context of a LlamaIndex workflow"):
        read_tool(FunctionTool.from_defaults(remember))


def test_built_tool_sends_its_whole_schema() -> None:
    built = build_tool(build_python_tool(ToolDefinition("search", "Search.", SEARCH), echo))
    assert built.metadata.to_openai_tool()["function"]["parameters"] == SEARCH


def test_built_tool_runs_sync_and_async_and_answers_in_json() -> None:
    (built,) = build_tools(PythonTools.of(double))
    assert built.call(number=2).content == '{"number": 4}'
    assert run(built.acall(number=2)).content == '{"number": 4}'


def test_built_tool_refuses_arguments_that_break_the_schema() -> None:
    with pytest.raises(ToolArgumentError, match=r"\$\.number"):
        build_tool(python_tool(double)).call(number="two")


def test_tool_that_is_built_and_read_again_is_the_same() -> None:
    original = python_tool(double)
    again = read_tool(build_tool(original))
    assert again.definition.description == original.definition.description
    assert again.definition.parameters == {**original.definition.parameters, "additionalProperties": False}
    assert again.call({"number": 2}) == {"number": 4}
