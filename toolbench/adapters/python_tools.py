"""Python tools for functions that take any arguments, and calls of Python tools by agent frameworks."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.python_functions import PythonTool, to_plain_value
from toolbench.engine.tools.typed_schemas import Signature
from toolbench.engine.tools.validation import list_schema_errors
from toolbench.engine.types import JsonObject


def build_python_tool(definition: ToolDefinition, function: Callable[..., object]) -> PythonTool:
    """Return a tool with this definition instead of one that is built from the signature of the function.

    Args:
        definition: name, description and parameters for the model.
        function: takes `**arguments: Any`.
    """
    return PythonTool(definition, function, Signature(function))


def build_tool_definition(openai_tool: Mapping[str, Any]) -> ToolDefinition:
    """Convert a tool in OpenAI's format to a definition.

    Args:
        openai_tool: an object with the member `function`. Missing parameters stand for no parameters.

    Raises:
        PlanError: the name is not allowed for a tool (see `ToolDefinition`).
    """
    function = openai_tool["function"]
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    return ToolDefinition(function["name"], function.get("description") or "", parameters)


def render_schema_errors(definition: ToolDefinition, arguments: JsonObject) -> str:
    """Return where and why the arguments do not fit the schema of the tool; "" if they fit."""
    return "; ".join(f"{error.path}: {error.message}" for error in list_schema_errors(definition, arguments))


def render_result(value: object) -> str:
    """Return the result of a tool as text for the model: a text unchanged, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


@dataclass(frozen=True, slots=True)
class ToolRunner:
    """Runner of a tool for agent frameworks, which call `run` or `run_async` with keyword arguments.

    Arguments are checked against the schema of the tool first. Exceptions of the tool's function are passed on.
    `timeout_seconds` and `alone` of the definition are settings of Toolbench's loop and have no effect here.
    """

    tool: PythonTool

    def run(self, /, **arguments: Any) -> object:
        """Run the tool and return its result as JSON values (`to_plain_value`).

        Raises:
            ToolArgumentError: the arguments do not fit the schema.
            RuntimeError: the function is async and this thread runs an event loop; use `run_async` there.
        """
        value = self._call(arguments)
        return to_plain_value(asyncio.run(_wait_for(value)) if inspect.isawaitable(value) else value)

    async def run_async(self, /, **arguments: Any) -> object:
        """Run the tool, in a thread if its function is not async; return its result as JSON values.

        Raises:
            ToolArgumentError: the arguments do not fit the schema.
        """
        value = self._call(arguments) if self.tool.is_async else await asyncio.to_thread(self._call, arguments)
        return to_plain_value(await value if inspect.isawaitable(value) else value)

    def _call(self, arguments: JsonObject) -> object:
        if errors := render_schema_errors(self.tool.definition, arguments):
            raise ToolArgumentError(errors)
        return self.tool.call(arguments)


async def _wait_for(value: Awaitable[object]) -> object:
    """Await the value. `asyncio.run` takes only coroutines, and a function may return another awaitable."""
    return await value
