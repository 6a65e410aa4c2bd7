"""Native tools in strict mode: the endpoint enforces the schema of the arguments."""

from collections.abc import Mapping, Sequence

from toolbench.engine.constraints.compiling import ConstraintOptions, compile_constraint
from toolbench.engine.constraints.strict import remove_added_nulls
from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.methods.native import NativeMethod
from toolbench.engine.methods.parsed_answer import ParsedAnswer
from toolbench.engine.strict_json import read_json, write_json
from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import JsonObject, Message, TransformChange, get_called_function


class NativeStrictMethod(NativeMethod):
    """Method that sends tools in a strict mode, `strict_tools` (OpenAI) or `strict_tool_use` (Anthropic).

    OpenAI's strict mode requires all properties, so the model gives null for optional ones. These nulls are removed
    from the arguments, since the tool's own schema may not allow them.
    """

    method = "constrained"

    def __init__(self, constraint: str, options: ConstraintOptions) -> None:
        super().__init__()
        self._constraint = constraint
        self._options = options

    def prepare_body(self, body: JsonObject, tools_json: list[JsonObject], tool_choice: RequestChoice) -> JsonObject:
        """Return the request body; see CallMethod."""
        native_body = super().prepare_body(body, tools_json, tool_choice)
        if not tools_json:
            return native_body
        return {**native_body, **compile_constraint(tools_json, self._constraint, self._options).request_fields}

    def parse_answer(self, message: Message, tools: Sequence[ToolDefinition]) -> ParsedAnswer:
        """Return the calls and the text of an answer; see CallMethod."""
        parsed_answer = super().parse_answer(message, tools)
        schemas = {tool.name: tool.parameters for tool in tools}
        calls = tuple(_remove_added_nulls(call, schemas) for call in parsed_answer.calls)
        return ParsedAnswer(
            calls,
            parsed_answer.text,
            parsed_answer.method_used,
            parsed_answer.findings,
            parsed_answer.has_unexecuted_call,
        )

    def list_dropped_keywords(
        self, tools_json: list[JsonObject], tool_choice: RequestChoice
    ) -> tuple[TransformChange, ...]:
        """Return one change for each schema keyword that is not enforced; see CallMethod."""
        compiled_constraint = compile_constraint(tools_json, self._constraint, self._options)
        return tuple(dropped_keyword.build_change() for dropped_keyword in compiled_constraint.dropped_keywords)


def _remove_added_nulls(call: JsonObject, schemas: Mapping[str, object]) -> JsonObject:
    function = get_called_function(call)
    arguments_text = function.get("arguments")
    if not isinstance(arguments_text, str) or "null" not in arguments_text:
        return call
    try:
        arguments = remove_added_nulls(read_json(arguments_text), schemas.get(str(function.get("name"))))
    except InvalidJsonError:
        return call
    return {**call, "function": {**function, "arguments": write_json(arguments)}}
