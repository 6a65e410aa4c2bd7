"""Tool definitions, and the set of tools that a model may see and use."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from toolbench.engine.errors import PlanError
from toolbench.engine.tools.typed_schemas import build_schema
from toolbench.engine.types import JsonObject

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """The definition of a tool.

    Attributes:
        parameters: a JSON Schema object.
        exposed_to_model: whether the tool is sent and may run.
        alone: whether the tool never runs at the same time as another call.
        timeout_seconds: time limit of each call; None for no limit.

    Raises:
        PlanError: the name does not begin with a letter (a to z, A to Z) or an underscore, or has a character other
            than such letters, digits, underscores, hyphens and dots.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    exposed_to_model: bool = True
    alone: bool = False
    timeout_seconds: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise PlanError(
                f"{str(self.name)[:80]!r} cannot name a tool: a name begins with a letter (a to z) or an underscore "
                "and goes on with letters, digits, underscores, hyphens and dots"
            )

    def with_parameter(
        self, name: str, of: Any, description: str = "", *, required: bool = True, **keywords: Any
    ) -> "ToolDefinition":
        """Return the tool with one more parameter; a parameter with the same name is replaced.

        Args:
            name: name of the parameter.
            of: a Python type (`str`, `list[int]`, `Literal["a", "b"]`, a pydantic model …) or a JSON Schema.
            description: description of the parameter.
            required: whether each call must have it.
            **keywords: further keywords of the schema (`minimum=0`).

        Raises:
            PlanError: the type has no schema.
        """
        schema = dict(of) if isinstance(of, Mapping) else build_schema(of)
        description_field = {"description": description} if description else {}
        properties = {**self.parameters.get("properties", {}), name: {**schema, **description_field, **keywords}}
        required_names = [
            required_name for required_name in self.parameters.get("required", ()) if required_name != name
        ]
        changed_fields = {"properties": properties, "required": [*required_names, name] if required else required_names}
        return replace(self, parameters={"type": "object", **self.parameters, **changed_fields})

    def to_openai(self) -> JsonObject:
        """Return the tool in OpenAI's format, without empty `required` lists, which some backends refuse."""
        parameters = _remove_empty_required(dict(self.parameters))
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class StoredToolDefinition(ToolDefinition):
    """A tool read from storage, which may have any name; `lint_tools` reports names that endpoints refuse."""

    def __post_init__(self) -> None:
        """Accept every name."""


def _remove_empty_required(schema: Any) -> Any:
    """Return the schema without empty `required` lists, at every level."""
    if isinstance(schema, Mapping):
        return {
            key: _remove_empty_required(value)
            for key, value in schema.items()
            if not (key == "required" and value == [])
        }
    if isinstance(schema, list):
        return [_remove_empty_required(item) for item in schema]
    return schema


@dataclass(frozen=True, slots=True)
class ToolRegistry:
    """The tools of an application. The exposed ones are sent to the model and may run.

    A tool is found by exactly its name.
    """

    definitions: tuple[ToolDefinition, ...] = ()

    def select(
        self, allowed_names: Iterable[str] | None = None, denied_names: Iterable[str] | None = None
    ) -> "ToolRegistry":
        """Return the registry with the allowed tools, without the denied ones.

        All tools are allowed if `allowed_names` is empty or None.
        """
        allowed, denied = set(allowed_names or ()), set(denied_names or ())
        selected_tools = (
            definition
            for definition in self.definitions
            if (not allowed or definition.name in allowed) and definition.name not in denied
        )
        return ToolRegistry(tuple(selected_tools))

    def list_exposed(self) -> tuple[ToolDefinition, ...]:
        """Return the tools with `exposed_to_model`."""
        return tuple(definition for definition in self.definitions if definition.exposed_to_model)

    def find(self, name: str) -> ToolDefinition | None:
        """Return the exposed tool with exactly this name, or None."""
        return next(
            (definition for definition in self.definitions if definition.name == name and definition.exposed_to_model),
            None,
        )
