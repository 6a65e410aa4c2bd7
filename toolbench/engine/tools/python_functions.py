"""Tools made from typed Python functions."""

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from pydantic_core import to_jsonable_python

from toolbench.engine.errors import PlanError
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.tools.typed_schemas import Signature, unwrap_function
from toolbench.engine.types import JsonObject


@dataclass(frozen=True, slots=True)
class PythonTool:
    """A Python function with its tool definition; `signature` converts the arguments of a call."""

    definition: ToolDefinition
    function: Callable[..., object]
    signature: Signature

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function."""
        return inspect.iscoroutinefunction(unwrap_function(self.function))

    def call(self, arguments: JsonObject) -> object:
        """Call the function and return its value; for an async function, its coroutine.

        Exceptions that the function raises are passed on.

        Raises:
            ToolArgumentError: the arguments do not fit; the function is not called.
        """
        return self.function(**self.signature.convert_arguments(arguments))


def python_tool(
    function: Callable[..., object],
    *,
    name: str = "",
    description: str = "",
    alone: bool = False,
    timeout_seconds: float | None = None,
) -> PythonTool:
    """Return a tool for a function.

    The schema of the tool is built from the types of the function's parameters. It includes defaults, descriptions in
    `Annotated`, enums and pydantic models.

    Args:
        function: the function; partials and callable objects need a name.
        name: name of the tool; "" for the function's.
        description: description of the tool; "" for the function's docstring.
        alone: whether the tool never runs at the same time as another call.
        timeout_seconds: time limit of each call; None for no limit.

    Raises:
        PlanError: the tool has no name or an invalid one, the signature cannot be read, or a JSON object cannot give
            a parameter: one that is positional-only, `*args`, without a type, or of a type without a JSON Schema.
    """
    signature = Signature(function)
    tool_name = name or getattr(function, "__name__", "")
    if not tool_name:
        raise PlanError(f"{function!r} cannot be a tool: it has no name of its own; give it one")
    definition = ToolDefinition(
        name=tool_name,
        description=description or _get_docstring(function),
        parameters=signature.schema,
        alone=alone,
        timeout_seconds=timeout_seconds,
    )
    return PythonTool(definition, function, signature)


def _get_docstring(function: Callable[..., object]) -> str:
    """Return the docstring of the function; "" if there is none.

    For a callable object, this is the docstring of `__call__` or, without one, of its class; for a partial, that of its
    function.
    """
    if isinstance(function, partial):
        return _get_docstring(function.func)
    inner_function = unwrap_function(function)
    documented_object = (
        function if inner_function.__name__ == "__call__" and not inner_function.__doc__ else inner_function
    )
    return inspect.getdoc(documented_object) or ""


@dataclass(frozen=True, slots=True)
class PythonTools:
    """A set of tools by name: the definitions for the model, and the functions that run."""

    by_name: Mapping[str, PythonTool] = field(default_factory=dict)

    @classmethod
    def from_functions(cls, *tools: PythonTool | Callable[..., object]) -> "PythonTools":
        """Return the set of these tools or functions.

        Raises:
            PlanError: two tools have the same name, or a function cannot be a tool (see `python_tool`).
        """
        python_tools = [tool if isinstance(tool, PythonTool) else python_tool(tool) for tool in tools]
        names = [tool.definition.name for tool in python_tools]
        if repeated_names := sorted(name for name, count in Counter(names).items() if count > 1):
            raise PlanError(f"these tool names are used more than once: {', '.join(repeated_names)}")
        return cls({tool.definition.name: tool for tool in python_tools})

    @property
    def registry(self) -> ToolRegistry:
        """Definitions of the tools."""
        return ToolRegistry(tuple(tool.definition for tool in self.by_name.values()))


def to_plain_value(value: object) -> object:
    """Convert models, dataclasses, enums, dates and the like in a value to JSON values.

    Objects of unknown types stay as they are. If the conversion fails (bytes that are not UTF-8), the whole value is
    returned unchanged. The tool call then ends with an error when its result is written as JSON.
    """
    try:
        return to_jsonable_python(value, fallback=lambda unknown: unknown)
    except ValueError:
        return value
