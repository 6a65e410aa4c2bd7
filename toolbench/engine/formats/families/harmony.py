"""gpt-oss: messages with a channel and a recipient."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbench.engine.errors import BadJson
from toolbench.engine.formats.definition import Block, Format, FoundCall, Holds, Layout, Prompt, Reading
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.json_calls import as_object, clean_name
from toolbench.engine.formats.literals import read_value
from toolbench.engine.formats.values import Known, TextCall, function_of
from toolbench.engine.formats.writing import enclosed, spaced_json
from toolbench.engine.messages import JsonObject

START, CHANNEL, MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
ENDS = ("<|end|>", "<|call|>", "<|return|>")
_RECIPIENT = re.compile(r"to=(?:functions\.)?(?P<name>[^\s<]+)")
_ANALYSIS = re.compile(r"(?:^|<\|channel\|>)\s*analysis")


@dataclass(frozen=True, slots=True)
class HarmonyMessage:
    """Reads one message: a recipient makes it a call, the analysis channel reasoning, anything else is text."""

    def __call__(self, body: str, known: Known, *, cut: bool) -> Reading:
        heading, marked, content = body.partition(MESSAGE)
        recipient = _RECIPIENT.search(heading)
        if not marked:
            return Reading(problem="call_cut") if cut and recipient else Reading(text="" if cut else content)
        if recipient:
            return _call(clean_name(recipient["name"]), content, cut=cut)
        return Reading(reasoning=content) if _ANALYSIS.search(heading) else Reading(text=content)


def _call(name: str, content: str, *, cut: bool) -> Reading:
    if not content.strip():
        return Reading(problem="call_cut") if cut else Reading((FoundCall(name, {}),))
    try:
        arguments = as_object(read_value(content))
    except BadJson:
        arguments = None
    if arguments is None:
        return Reading(problem="call_cut" if cut else "call_unreadable")
    return Reading((FoundCall(name, arguments),))


def _written(call: TextCall, place: int) -> str:
    opening = START + "assistant" if place else ""
    to = f"commentary to=functions.{call.name} <|constrain|>json"
    return f"{opening}{CHANNEL}{to}{MESSAGE}{spaced_json(call.arguments)}{ENDS[1]}"


def _namespace(tools: Sequence[JsonObject]) -> str:
    listed = "\n\n".join(_type(function_of(tool)) for tool in tools)
    return f"# Tools\n\n## functions\n\nnamespace functions {{\n\n{listed}\n\n}} // namespace functions"


def _type(function: JsonObject) -> str:
    comment = f"// {function['description']}\n" if function.get("description") else ""
    parameters = function.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    if not properties:
        return f"{comment}type {function.get('name')} = () => any;"
    required = parameters.get("required", ()) if isinstance(parameters, Mapping) else ()
    fields = "".join(_field(key, schema, key in required) for key, schema in properties.items())
    return f"{comment}type {function.get('name')} = (_: {{\n{fields}}}) => any;"


def _field(key: str, schema: Mapping[str, Any], required: bool) -> str:
    comment = f"// {schema['description']}\n" if schema.get("description") else ""
    default = f" // default: {spaced_json(schema['default'])}" if "default" in schema else ""
    return f"{comment}{key}{'' if required else '?'}: {_typescript(schema)},{default}\n"


def _typescript(schema: Mapping[str, Any], depth: int = 8) -> str:
    if "enum" in schema:
        return " | ".join(spaced_json(value) for value in schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_typescript({**schema, "type": each}, depth - 1) for each in kind)
    if kind == "array":
        items = schema.get("items")
        return f"{_typescript(items, depth - 1) if isinstance(items, Mapping) and depth else 'any'}[]"
    if kind == "object" and depth and isinstance(schema.get("properties"), Mapping):
        fields = (f"{key}: {_typescript(value, depth - 1)}" for key, value in schema["properties"].items())
        return "{" + ", ".join(fields) + "}"
    return {"integer": "number", "number": "number", "string": "string", "boolean": "boolean"}.get(str(kind), "any")


_READ = HarmonyMessage()
HARMONY = Format(
    "harmony",
    (Block(CHANNEL, _READ, ENDS, (START,)), Block(START, _READ, ENDS, (START,))),
    Layout(_written, between=""),
    Prompt(
        _namespace,
        enclosed(f"{START}functions.{{name}} to=assistant{CHANNEL}commentary{MESSAGE}", ENDS[0]),
        results_between="",
    ),
    dropped=ENDS,
    reasoning=(),
    thought=(f"{CHANNEL}analysis{MESSAGE}", ENDS[0]),
    bare=bare_json,
    holds=Holds(r"[^\s<|｜=]+", never=(*ENDS, START)),
)
