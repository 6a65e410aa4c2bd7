"""Tool definitions and the set a model may see and use."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from toolbench.engine.errors import PlanError
from toolbench.engine.tools.typed_schemas import build_schema
from toolbench.engine.types import JsonObject

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """`parameters` is a JSON Schema object. A tool with `exposed_to_model=False` is neither sent nor runnable. One that
    runs `alone` never runs beside another call; `timeout_seconds` bounds each of its calls.

    Raises:
        PlanError: the name is no identifier.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    exposed_to_model: bool = True
    alone: bool = False
    timeout_seconds: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _IDENTIFIER.fullmatch(self.name):
            raise PlanError(
                f"{str(self.name)[:80]!r} cannot name a tool: a name begins with a letter (a to z) or an underscore "
                "and goes on with letters, digits, underscores, hyphens and dots"
            )

    def with_parameter(
        self, name: str, of: Any, description: str = "", *, required: bool = True, **keywords: Any
    ) -> "ToolDefinition":
        """The same tool with one parameter more. `of` is a Python type (`str`, `list[int]`, `Literal["a", "b"]`, a
        pydantic model …) or a JSON Schema; `keywords` are further keywords of the schema (`minimum=0`). Raises
        PlanError for a type without a schema."""
        schema = dict(of) if isinstance(of, Mapping) else build_schema(of)
        described = {"description": description} if description else {}
        properties = {**self.parameters.get("properties", {}), name: {**schema, **described, **keywords}}
        needed = [each for each in self.parameters.get("required", ()) if each != name]
        more = {"properties": properties, "required": [*needed, name] if required else needed}
        return replace(self, parameters={"type": "object", **self.parameters, **more})

    def to_openai(self) -> JsonObject:
        """The wire shape, with every empty `required` list dropped (some backends refuse it)."""
        parameters = _remove_empty_required(dict(self.parameters))
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class StoredToolDefinition(ToolDefinition):
    """A tool as somebody stored it, also under a name that is no identifier: `lint_tools` reports such names."""

    def __post_init__(self) -> None:
        """Accept every name."""


def _remove_empty_required(schema: Any) -> Any:
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
    """What the application offers, masked by allow and deny lists. The same subset is sent and may run. Names match
    exactly."""

    definitions: tuple[ToolDefinition, ...] = ()

    def masked(self, allow: Iterable[str] | None = None, deny: Iterable[str] | None = None) -> "ToolRegistry":
        """A registry without what is not allowed or denied; allow first, then deny; an empty list means no filter."""
        allowed, denied = set(allow or ()), set(deny or ())
        kept = (d for d in self.definitions if (not allowed or d.name in allowed) and d.name not in denied)
        return ToolRegistry(tuple(kept))

    def exposed(self) -> tuple[ToolDefinition, ...]:
        return tuple(d for d in self.definitions if d.exposed_to_model)

    def find(self, name: str) -> ToolDefinition | None:
        """The exposed tool of exactly this name, or None."""
        return next((d for d in self.definitions if d.name == name and d.exposed_to_model), None)
