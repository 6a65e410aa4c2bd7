"""Tools of CrewAI: from and to Python tools."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from crewai.tools import BaseTool, ToolFailure
from crewai.tools.base_tool import Tool
from crewai.utilities.agent_utils import convert_tools_to_openai_schema
from crewai.utilities.pydantic_schema_utils import sanitize_tool_params_for_openai_strict

from toolbench.adapters.argument_model import build_argument_model
from toolbench.adapters.python_tools import ToolRunner, build_python_tool, build_tool_definition, render_result
from toolbench.engine.tools.python_functions import PythonTool, PythonTools


class JsonResultTool(Tool):
    """Tool of CrewAI whose results the model gets as JSON, but texts unchanged; CrewAI itself would use `str`."""

    def format_output_for_agent(self, raw_result: Any) -> str:
        """Return the text of a result for the model."""
        return render_result(raw_result)


def read_tools(tools: Iterable[BaseTool]) -> PythonTools:
    """Return CrewAI's tools as a set of Python tools.

    Raises:
        PlanError: a name is not allowed for a tool (see `ToolDefinition`), or two tools have the same name.
    """
    return PythonTools.from_functions(*map(read_tool, tools))


def read_tool(tool: BaseTool) -> PythonTool:
    """Return a tool of CrewAI as a Python tool with the definition that CrewAI sends to OpenAI.

    CrewAI sends names in lower case with underscores, and marks every argument as required.

    Raises:
        PlanError: the name is not allowed for a tool (see `ToolDefinition`).
    """

    def call(**arguments: Any) -> object:
        return _check_result(tool.run(**arguments))

    (openai_tool,), *_ = convert_tools_to_openai_schema([tool])
    definition = build_tool_definition(openai_tool)
    parameters = sanitize_tool_params_for_openai_strict(dict(definition.parameters))
    return build_python_tool(replace(definition, parameters=parameters), call)


def build_tools(tools: PythonTools) -> list[Tool]:
    """Return a set of Python tools as tools of CrewAI."""
    return [build_tool(tool) for tool in tools.by_name.values()]


def build_tool(tool: PythonTool) -> Tool:
    """Return a Python tool as a tool of CrewAI."""
    return JsonResultTool(
        name=tool.definition.name,
        description=tool.definition.description,
        func=ToolRunner(tool).run,
        args_schema=build_argument_model(tool.definition),
    )


def _check_result(result: object) -> object:
    """Return the result of a tool unchanged, unless it is CrewAI's object for a failure.

    Raises:
        RuntimeError: the tool reported a failure.
    """
    if isinstance(result, ToolFailure):
        raise RuntimeError(result.as_agent_message())
    return result
