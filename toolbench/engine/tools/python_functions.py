"""Tools that are typed Python functions."""

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pydantic_core import to_jsonable_python

from toolbench.engine.errors import PlanError
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.tools.typed_schemas import Signature, get_code
from toolbench.engine.types import JsonObject


@dataclass(frozen=True, slots=True)
class PythonTool:
    """A function with the definition that a model sees."""

    definition: ToolDefinition
    function: Callable[..., object]
    signature: Signature

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(get_code(self.function))

    def call(self, arguments: JsonObject) -> object:
        """What the function gives, of an async one its coroutine. Raises ToolArgumentError before it is called, and
        whatever it raises."""
        return self.function(**self.signature.read(arguments))


def python_tool(
    function: Callable[..., object],
    *,
    name: str = "",
    description: str = "",
    alone: bool = False,
    timeout_seconds: float | None = None,
) -> PythonTool:
    """A tool named and described as the function is, where nothing else is given; its parameters from the types, with
    Annotated descriptions, defaults, enums and models. Partials and objects that can be
    called need a name. Raises PlanError for a function that no JSON object can call."""
    signature = Signature(function)
    named = name or getattr(function, "__name__", "")
    if not named:
        raise PlanError(f"{function!r} cannot be a tool: it has no name of its own; give it one")
    definition = ToolDefinition(
        name=named,
        description=description or _get_docstring(function),
        parameters=signature.schema,
        alone=alone,
        timeout_seconds=timeout_seconds,
    )
    return PythonTool(definition, function, signature)


def _get_docstring(function: Callable[..., object]) -> str:
    """That of the function; of an object without one on its `__call__`, its own."""
    code = get_code(function)
    said_by = function if code.__name__ == "__call__" and not code.__doc__ else code
    return inspect.getdoc(said_by) or ""


@dataclass(frozen=True, slots=True)
class PythonTools:
    """A set of tools by name: what a model is offered, and what runs when it calls."""

    by_name: Mapping[str, PythonTool] = field(default_factory=dict)

    @classmethod
    def of(cls, *tools: PythonTool | Callable[..., object]) -> "PythonTools":
        """From tools or bare functions. Raises PlanError for two of one name."""
        made = [tool if isinstance(tool, PythonTool) else python_tool(tool) for tool in tools]
        names = [tool.definition.name for tool in made]
        if twice := sorted(name for name, times in Counter(names).items() if times > 1):
            raise PlanError(f"tools named twice: {', '.join(twice)}")
        return cls({tool.definition.name: tool for tool in made})

    @property
    def registry(self) -> ToolRegistry:
        return ToolRegistry(tuple(tool.definition for tool in self.by_name.values()))


def to_plain_value(value: object) -> object:
    """A function's value as JSON holds it: models, dataclasses, enums, dates and the like are written out. What cannot
    be written stays as it is; the model is told so then."""
    try:
        return to_jsonable_python(value, fallback=lambda unknown: unknown)
    except ValueError:
        return value
