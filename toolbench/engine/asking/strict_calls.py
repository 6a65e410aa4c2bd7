"""Native strict tools: the endpoint holds the arguments of calls to their schema."""

from collections.abc import Mapping, Sequence

from toolbench.engine.asking.native import Native
from toolbench.engine.asking.read import Read
from toolbench.engine.constrain.compiling import Asked, compile_constraint
from toolbench.engine.constrain.strict import without_added_nulls
from toolbench.engine.errors import BadJson
from toolbench.engine.json_text import read_json, write_json
from toolbench.engine.messages import JsonObject, Message, TransformChange, function_in
from toolbench.engine.tools.choice import WireChoice
from toolbench.engine.tools.definitions import ToolDefinition


class StrictCalls(Native):
    """`constraint` is one of OF_TOOLS. Every key of OpenAI's strict schema is required, an optional one as null; those
    nulls are taken out of what comes back, so that the tool sees the arguments it knows."""

    method = "constrained"

    def __init__(self, constraint: str, asked: Asked) -> None:
        super().__init__()
        self._constraint = constraint
        self._asked = asked

    def shape(
        self, body: JsonObject, tools: Sequence[ToolDefinition], tools_json: list[JsonObject], tool_choice: WireChoice
    ) -> JsonObject:
        shaped = super().shape(body, tools, tools_json, tool_choice)
        if not tools_json:
            return shaped
        return {**shaped, **compile_constraint(tools_json, self._constraint, self._asked).fields}

    def read(self, message: Message, tools: Sequence[ToolDefinition]) -> Read:
        read = super().read(message, tools)
        schemas = {tool.name: tool.parameters for tool in tools}
        calls = tuple(_without_nulls(call, schemas) for call in read.calls)
        return Read(calls, read.text, read.path, read.findings, read.not_executed)

    def dropped(self, tools_json: list[JsonObject], tool_choice: WireChoice) -> tuple[TransformChange, ...]:
        compiled = compile_constraint(tools_json, self._constraint, self._asked)
        return tuple(dropped.as_change() for dropped in compiled.dropped)


def _without_nulls(call: JsonObject, schemas: Mapping[str, object]) -> JsonObject:
    function = function_in(call)
    given = function.get("arguments")
    if not isinstance(given, str) or "null" not in given:
        return call
    try:
        arguments = without_added_nulls(read_json(given), schemas.get(str(function.get("name"))))
    except BadJson:
        return call
    return {**call, "function": {**function, "arguments": write_json(arguments)}}
