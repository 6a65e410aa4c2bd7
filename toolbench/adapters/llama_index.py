"""Tools of LlamaIndex: from and to Python tools."""

import inspect
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from llama_index.core.tools import BaseTool, FunctionTool, ToolMetadata, ToolOutput
from llama_index.core.tools.tool_spec.base import BaseToolSpec

from toolbench.adapters.argument_model import build_argument_model
from toolbench.adapters.python_tools import ToolRunner, build_python_tool, build_tool_definition, render_result
from toolbench.engine.errors import PlanError
from toolbench.engine.tools.python_functions import PythonTool, PythonTools
from toolbench.engine.types import JsonObject


@dataclass
class VerbatimMetadata(ToolMetadata):
    """Metadata of a tool whose whole JSON Schema is sent; LlamaIndex would drop keywords such as `anyOf`."""

    def get_parameters_dict(self) -> JsonObject:
        """Return the JSON Schema of the arguments."""
        schema: JsonObject = self.fn_schema.model_json_schema()
        return schema


def read_tools(tools: Iterable[BaseTool] | BaseToolSpec) -> PythonTools:
    """Return LlamaIndex's tools, or those of a tool spec, as a set of Python tools.

    Raises:
        PlanError: a tool cannot be read, or two tools have the same name.
    """
    return PythonTools.from_functions(
        *map(read_tool, tools.to_tool_list() if isinstance(tools, BaseToolSpec) else tools)
    )


def read_tool(tool: BaseTool) -> PythonTool:
    """Return a tool of LlamaIndex as a Python tool with the definition that LlamaIndex sends to OpenAI.

    LlamaIndex adds `additionalProperties: false` to the JSON Schema when it sends the definition.

    Raises:
        PlanError: the name is not allowed for a tool (see `ToolDefinition`), or the tool needs the context of a
            workflow.
    """
    definition = build_tool_definition(tool.metadata.to_openai_tool(skip_length_check=True))
    definition = replace(definition, parameters={**definition.parameters, "additionalProperties": False})
    if getattr(tool, "requires_context", False):
        raise PlanError(f"{definition.name} cannot be read: it needs the context of a LlamaIndex workflow")
    is_async = isinstance(tool, FunctionTool) and inspect.iscoroutinefunction(tool.real_fn)
    return build_python_tool(definition, _build_async_call(tool) if is_async else _build_call(tool))


def build_tools(tools: PythonTools) -> list[FunctionTool]:
    """Return a set of Python tools as tools of LlamaIndex."""
    return [build_tool(tool) for tool in tools.by_name.values()]


def build_tool(tool: PythonTool) -> FunctionTool:
    """Return a Python tool as a tool of LlamaIndex. The model gets results as JSON, but texts unchanged."""
    runner, definition = ToolRunner(tool), tool.definition
    return FunctionTool(
        fn=runner.run,
        async_fn=runner.run_async,
        metadata=VerbatimMetadata(definition.description, definition.name, build_argument_model(definition)),
        callback=render_result,
    )


def _build_call(tool: BaseTool) -> Any:
    def call(**arguments: Any) -> object:
        return _read_output(tool(**arguments))

    return call


def _build_async_call(tool: FunctionTool) -> Any:
    async def call(**arguments: Any) -> object:
        return _read_output(await tool.acall(**arguments))

    return call


def _read_output(output: ToolOutput) -> object:
    """Return the value of the tool, or the text for the model if it is neither the value's `str` nor its JSON.

    Raises:
        RuntimeError: the tool reported an error.
    """
    if output.is_error:
        raise RuntimeError(output.content)
    value = output.raw_output
    return value if output.content in (str(value), render_result(value)) else output.content
