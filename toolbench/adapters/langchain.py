"""Tools of LangChain: from and to Python tools."""

from collections.abc import Iterable
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool

from toolbench.adapters.argument_model import build_object_schema
from toolbench.adapters.python_tools import ToolRunner, build_python_tool, build_tool_definition
from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.tools.python_functions import PythonTool, PythonTools


def read_tools(tools: Iterable[BaseTool]) -> PythonTools:
    """Return LangChain's tools as a set of Python tools.

    Raises:
        PlanError: a name is not allowed for a tool (see `ToolDefinition`), or two tools have the same name.
    """
    return PythonTools.from_functions(*map(read_tool, tools))


def read_tool(tool: BaseTool) -> PythonTool:
    """Return a tool of LangChain as a Python tool with the definition that LangChain sends to OpenAI.

    Raises:
        PlanError: the name is not allowed for a tool (see `ToolDefinition`).
    """
    is_async = getattr(tool, "func", tool) is None  # a tool with a coroutine only
    definition = build_tool_definition(convert_to_openai_tool(tool))
    return build_python_tool(definition, _build_async_call(tool) if is_async else _build_call(tool))


def build_tools(tools: PythonTools) -> list[StructuredTool]:
    """Return a set of Python tools as tools of LangChain."""
    return [build_tool(tool) for tool in tools.by_name.values()]


def build_tool(tool: PythonTool) -> StructuredTool:
    """Return a Python tool as a tool of LangChain.

    If the arguments of a call do not fit, the model gets the error as the result.
    """
    runner = ToolRunner(tool)

    def run(**arguments: Any) -> object:
        try:
            return runner.run(**arguments)
        except ToolArgumentError as error:
            raise ToolException(str(error)) from error

    async def run_async(**arguments: Any) -> object:
        try:
            return await runner.run_async(**arguments)
        except ToolArgumentError as error:
            raise ToolException(str(error)) from error

    return StructuredTool(
        name=tool.definition.name,
        description=tool.definition.description,
        args_schema=build_object_schema(tool.definition),
        func=run,
        coroutine=run_async,
        handle_tool_error=True,
    )


def _build_call(tool: BaseTool) -> Any:
    def call(**arguments: Any) -> object:
        return tool.invoke(arguments)

    return call


def _build_async_call(tool: BaseTool) -> Any:
    async def call(**arguments: Any) -> object:
        return await tool.ainvoke(arguments)

    return call
