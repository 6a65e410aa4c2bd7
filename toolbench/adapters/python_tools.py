"""Python tools around functions that take any arguments, and calls of Python tools by agent frameworks."""

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
    """Return a tool with this definition.

    Args:
        definition: the definition; the signature of the function has no influence on it.
        function: takes `**arguments: Any`.
    """
    return PythonTool(definition, function, Signature(function))


def build_tool_definition(openai_tool: Mapping[str, Any]) -> ToolDefinition:
    """Return the definition of a tool in OpenAI's format.

    Raises:
        PlanError: the name is not an identifier.
    """
    function = openai_tool["function"]
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    return ToolDefinition(function["name"], function.get("description") or "", parameters)


def render_schema_errors(definition: ToolDefinition, arguments: JsonObject) -> str:
    """Return where and why the arguments do not fit the schema of the tool; "" if they fit."""
    return "; ".join(f"{error.path}: {error.message}" for error in list_schema_errors(definition, arguments))


def render_result(value: object) -> str:
    """Return the result of a tool as text for the model: a text as it is, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


@dataclass(frozen=True, slots=True)
class ToolRunner:
    """Functions that run a tool, in the form that agent frameworks call: with keyword arguments, sync and async.

    Arguments are checked against the schema of the tool first. `timeout_seconds` and `alone` of the definition are
    settings of Toolbench's loop and have no effect here.
    """

    tool: PythonTool

    def run(self, /, **arguments: Any) -> object:
        """Run the tool and return its result as a plain value.

        An async tool must not be run by this function from a running event loop.

        Raises:
            ToolArgumentError: the arguments do not fit the schema.
        """
        value = self._call(arguments)
        return to_plain_value(asyncio.run(_wait_for(value)) if inspect.isawaitable(value) else value)

    async def run_async(self, /, **arguments: Any) -> object:
        """Run the tool, in a thread if its function is not async, and return its result as a plain value.

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
    return await value
