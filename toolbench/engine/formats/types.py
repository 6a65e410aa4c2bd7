"""What is found in a text, and what is known while it is read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolbench.engine.strict_json import get_object
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import Finding, JsonObject

Tool = JsonObject | ToolDefinition


@dataclass(frozen=True, slots=True)
class TextCall:
    """A call read from text. `id` is the one that was written, else `call_1`, `call_2` … by place; `raw` is the text
    it stood in, markers included."""

    name: str
    arguments: JsonObject
    id: str = ""
    raw: str = ""


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A whole answer, read. `text` is what the user may see, trimmed; what could not be read as a call stays in it and
    has a finding."""

    text: str
    reasoning: str = ""
    calls: tuple[TextCall, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class DecoderEvent:
    """News while a text is fed: `text` or `reasoning` that is certain, a whole `call`, or `void`: all text so far was
    reasoning, and the calls so far were only drafted in it."""

    kind: Literal["text", "reasoning", "call", "void"]
    text: str = ""
    call: TextCall | None = None


@dataclass(frozen=True, slots=True)
class ToolSchemas:
    """The tools' parameter schemas by name. `guess_untyped` reads tagged values without a schema as JSON where they
    are JSON; else they stay text."""

    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    guess_untyped: bool = False

    def parameter(self, tool: str, name: str) -> Mapping[str, Any] | None:
        """The schema of one parameter; None where there is none."""
        properties = self.schemas.get(tool, {}).get("properties")
        found = properties.get(name) if isinstance(properties, Mapping) else None
        return found if isinstance(found, Mapping) else None

    def takes_nothing(self, tool: str) -> bool:
        """Whether a known tool has no parameters at all, so that its name alone is a whole call."""
        return tool in self.schemas and not self.schemas[tool].get("properties")


def build_tool_schemas(tools: Iterable[Tool], *, guess_untyped: bool = False) -> ToolSchemas:
    """OpenAI tool objects (wrapped or flat) and ToolDefinitions; what has no name is left out."""
    schemas: dict[str, Mapping[str, Any]] = {}
    for tool in tools:
        if isinstance(tool, ToolDefinition):
            schemas[tool.name] = tool.parameters
            continue
        function = get_function(tool)
        name, parameters = function.get("name"), function.get("parameters", function.get("input_schema"))
        if isinstance(name, str) and name:
            schemas[name] = parameters if isinstance(parameters, Mapping) else {}
    return ToolSchemas(schemas, guess_untyped)


def get_function(tool: Tool) -> JsonObject:
    """The function inside a tool: `name`, `description`, `parameters`. Anything else gives an empty object."""
    written = tool.to_openai() if isinstance(tool, ToolDefinition) else tool
    if not isinstance(written, dict):
        return {}
    inner = written.get("function", written)
    return get_object(inner)
