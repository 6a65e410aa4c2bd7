"""Python tools around functions of frameworks, and calls of Python tools by frameworks."""

import asyncio
from datetime import date
from typing import Any

import pytest

from toolbench.adapters.python_tools import ToolRunner, build_python_tool, build_tool_definition, render_result
from toolbench.engine.errors import PlanError, ToolArgumentError
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.python_functions import PythonTool, python_tool

ADD = ToolDefinition("add").with_parameter("a", int).with_parameter("b", int, required=False)


def add(**arguments: Any) -> object:
    return sum(arguments.values())


async def add_async(**arguments: Any) -> object:
    return sum(arguments.values())


def next_day(day: date) -> date:
    """Return the next day."""
    return date.fromordinal(day.toordinal() + 1)


@pytest.fixture(params=[add, add_async])
def tool(request: pytest.FixtureRequest) -> PythonTool:
    return build_python_tool(ADD, request.param)


def test_build_python_tool_keeps_definition_and_passes_arguments() -> None:
    tool = build_python_tool(ADD, add)
    assert tool.definition is ADD
    assert tool.call({"a": 2, "b": 3}) == 5


def test_build_tool_definition_without_parameters_has_no_properties() -> None:
    definition = build_tool_definition({"type": "function", "function": {"name": "ping", "description": None}})
    assert definition == ToolDefinition("ping", "", {"type": "object", "properties": {}})


def test_build_tool_definition_refuses_a_blank_in_the_name() -> None:
    with pytest.raises(PlanError, match="cannot name a tool"):
        build_tool_definition({"type": "function", "function": {"name": "look up"}})


def test_tool_runner_runs_sync_and_async_functions(tool: PythonTool) -> None:
    runner = ToolRunner(tool)
    assert runner.run(a=2, b=3) == 5
    assert asyncio.run(runner.run_async(a=2)) == 2


def test_tool_runner_refuses_arguments_that_break_the_schema(tool: PythonTool) -> None:
    runner = ToolRunner(tool)
    with pytest.raises(ToolArgumentError, match=r"\$\.a: is required"):
        runner.run(b=3)
    with pytest.raises(ToolArgumentError, match=r"\$\.b"):
        asyncio.run(runner.run_async(a=2, b="3"))


def test_tool_runner_converts_arguments_and_result_of_typed_function() -> None:
    assert ToolRunner(python_tool(next_day)).run(day="2026-11-30") == "2026-12-01"


def test_render_result_keeps_text_and_writes_other_values_as_json() -> None:
    assert render_result("4 °C") == "4 °C"
    assert render_result({"degrees": 4, "city": "Tromsø"}) == '{"degrees": 4, "city": "Tromsø"}'
    assert render_result({1, 2}) == '"{1, 2}"'
