"""Results of parsing a text, and the tools' schemas that parsing uses."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolbench.engine.strict_json import get_object
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import Finding, JsonObject

Tool = JsonObject | ToolDefinition  # an object has the form of OpenAI's API, or is the function in it


@dataclass(frozen=True, slots=True)
class TextCall:
    """A call that was read from a text, or that is to be rendered as text.

    Attributes:
        id: the id in the text. A parsed call without one gets `call_1`, `call_2` and so on by position.
        raw_text: the text of the block that contains the call, with its markers; for a Python call, which may share
            its block with others, the text of the call alone. "" if the call was not read from a text.
    """

    name: str
    arguments: JsonObject
    id: str = ""
    raw_text: str = ""


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A complete answer, parsed.

    Attributes:
        text: the text for the user, trimmed. A call that could not be read has a finding, and stays in the text unless
            other calls of its block could be read.
        reasoning: the reasoning, trimmed; "" for none.
    """

    text: str
    reasoning: str = ""
    calls: tuple[TextCall, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class DecoderEvent:
    """A part of an answer that was decoded before the whole text has arrived.

    Attributes:
        kind: `text`, `reasoning`, `call` (complete), or `void`: the text of all earlier events was reasoning, and their
            calls do not count.
        text: the text of the part; for void the whole reasoning so far.
        call: the call; None for other kinds.
    """

    kind: Literal["text", "reasoning", "call", "void"]
    text: str = ""
    call: TextCall | None = None


@dataclass(frozen=True, slots=True)
class ToolSchemas:
    """The parameter schemas of the offered tools, by name.

    Attributes:
        guess_untyped: whether a value between tags whose type no schema restricts is converted if it is valid JSON.
            Otherwise it stays text.
    """

    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    guess_untyped: bool = False

    def find_parameter(self, tool_name: str, parameter_name: str) -> Mapping[str, Any] | None:
        """Return the schema of one parameter, or None if there is none."""
        properties = self.schemas.get(tool_name, {}).get("properties")
        schema = properties.get(parameter_name) if isinstance(properties, Mapping) else None
        return schema if isinstance(schema, Mapping) else None

    def has_no_parameters(self, tool_name: str) -> bool:
        """Return whether a tool is offered and has no parameters, so that its name alone is a complete call."""
        return tool_name in self.schemas and not self.schemas[tool_name].get("properties")


def build_tool_schemas(tools: Iterable[Tool], *, guess_untyped: bool = False) -> ToolSchemas:
    """Return the schemas of OpenAI tool objects (wrapped or flat) and ToolDefinitions, by tool name.

    An object may have its schema in `input_schema` instead of `parameters`. Objects without a name are left out.
    """
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
    """Return the object with a tool's `name`, `description` and `parameters`; {} if there is none."""
    tool_json = tool.to_openai() if isinstance(tool, ToolDefinition) else tool
    if not isinstance(tool_json, dict):
        return {}
    return get_object(tool_json.get("function", tool_json))
