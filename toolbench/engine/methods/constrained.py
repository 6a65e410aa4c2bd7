"""The method `constrained`: a schema or a grammar allows only calls and final answers.

If the endpoint enforces it, each complete answer is valid JSON of the schema; its values may still be wrong.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from toolbench.engine.constraints.allowed_answers import ANSWER_KEY, is_final_answer_allowed, select_tools
from toolbench.engine.constraints.compiling import CompiledConstraint, ConstraintOptions, compile_constraint
from toolbench.engine.constraints.strict import remove_added_nulls
from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.methods.inline_reasoning import remove_partial_reasoning, split_message_reasoning
from toolbench.engine.methods.instructions import (
    append_to_system,
    build_instruction,
    get_prompt_version,
    render_call_json,
    render_history_as_text,
)
from toolbench.engine.methods.interface import TextCallMethod
from toolbench.engine.methods.json_in_text import JsonCall, parse_call
from toolbench.engine.methods.parsed_answer import ParsedAnswer, build_unasked_calls_answer, build_unexecuted_answer
from toolbench.engine.methods.streaming_calls import FindCalls, JsonCallWatcher
from toolbench.engine.strict_json import read_json, write_json
from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import Finding, JsonObject, Message, TransformChange
from toolbench.engine.wire_formats.parse_answer import (
    build_openai_call,
    get_message_text,
    list_structured_calls,
    truncate_snippet,
)


class ConstrainedMethod(TextCallMethod):
    """Method that requests calls by a constraint on the text of the answer.

    A final answer is allowed unless the tool choice is `required` or names a tool. Without tools, or with the tool
    choice `none`, there is no constraint.

    Args:
        constraint: a name in `schema_support.CONSTRAINTS` that is not in TOOL_CONSTRAINTS, such as `strict`.
        options: None for the defaults.
    """

    method = "constrained"
    prompt_version = get_prompt_version("constrained")

    def __init__(self, constraint: str, options: ConstraintOptions | None = None) -> None:
        self.constraint = constraint
        self._options = options or ConstraintOptions()

    def prepare_body(self, body: JsonObject, tools_json: list[JsonObject], tool_choice: RequestChoice) -> JsonObject:
        """Return the request body; see CallMethod."""
        if not tools_json or tool_choice == "none":
            return dict(body)
        instruction = build_instruction(
            self.method,
            tools_json,
            allows_final=is_final_answer_allowed(tool_choice),
            allows_several=self._options.max_calls > 1,
        )
        messages = append_to_system(body["messages"], instruction)
        return {**body, "messages": messages, **self._compile(tools_json, tool_choice).request_fields}

    def parse_answer(self, message: Message, tools: Sequence[ToolDefinition]) -> ParsedAnswer:
        """Return the calls and the text of an answer; see CallMethod.

        Reasoning, also empty reasoning, is removed from the text only if the whole text does not match the schema.
        """
        parsed_answer = self._parse_text(message, get_message_text(message), tools)
        if parsed_answer.method_used == "constrained":
            return parsed_answer
        text, separated_message = split_message_reasoning(message)
        return replace(self._parse_text(message, text, tools), message=separated_message)

    def _parse_text(self, message: Message, text: str, tools: Sequence[ToolDefinition]) -> ParsedAnswer:
        """Return the calls or the final text in the text of an answer, with or without its reasoning."""
        try:
            value = read_json(text)
        except InvalidJsonError:
            return _build_off_schema_answer(message, text, has_tools=bool(tools))
        if self.constraint == "strict" and isinstance(value, dict):
            value = value.get(ANSWER_KEY, value)
        if isinstance(value, dict) and isinstance(value.get("final"), str):
            return ParsedAnswer((), value["final"], "constrained")
        calls = self._parse_calls(value, tools)
        if not calls:
            return _build_off_schema_answer(message, text, has_tools=bool(tools))
        openai_calls = (
            build_openai_call(f"constrained_call_{number}", call.name, call.arguments)
            for number, call in enumerate(calls, start=1)
        )
        return ParsedAnswer(
            tuple(openai_calls), "", "constrained", parsed_arguments=tuple(call.arguments for call in calls)
        )

    def build_watcher(self, tools: Sequence[ToolDefinition]) -> Callable[[], FindCalls] | None:
        """Return a function that builds a call finder for each attempt of a streamed answer; see CallMethod."""
        return lambda: JsonCallWatcher(lambda text: self._parse_text({}, remove_partial_reasoning(text), tools).calls)

    def render_history(self, messages: Sequence[Message]) -> list[Message]:
        """Return the history in the form of this method; see CallMethod."""
        return render_history_as_text(messages, render_call=render_call_json, render_final=_render_final_json)

    def list_dropped_keywords(
        self, tools_json: list[JsonObject], tool_choice: RequestChoice
    ) -> tuple[TransformChange, ...]:
        """Return one change for each schema keyword that is not enforced; see CallMethod."""
        if not tools_json or tool_choice == "none":
            return ()
        return tuple(
            dropped_keyword.build_change()
            for dropped_keyword in self._compile(tools_json, tool_choice).dropped_keywords
        )

    def _compile(self, tools_json: list[JsonObject], tool_choice: RequestChoice) -> CompiledConstraint:
        options = replace(self._options, allows_final=is_final_answer_allowed(tool_choice))
        return compile_constraint(select_tools(tools_json, tool_choice), self.constraint, options)

    def _parse_calls(self, value: object, tools: Sequence[ToolDefinition]) -> list[JsonCall]:
        """Return the calls in the JSON of an answer.

        The result is [] if there is no call, or if one of them is unreadable or names no known tool.
        """
        schemas = {tool.name: tool.parameters for tool in tools}
        call_values = value.get("calls") if isinstance(value, dict) and self._options.max_calls > 1 else None
        parsed_calls = [
            parse_call(call, list(schemas)) for call in (call_values if isinstance(call_values, list) else [value])
        ]
        calls = [call for call in parsed_calls if call is not None]
        if len(calls) < len(parsed_calls):
            return []
        if self.constraint != "strict":
            return calls
        return [
            JsonCall(call.name, remove_added_nulls(call.arguments, schemas[call.name]), call.is_exact) for call in calls
        ]


def _render_final_json(text: str) -> str:
    return write_json({"final": text})


def _build_off_schema_answer(message: Message, text: str, *, has_tools: bool) -> ParsedAnswer:
    """Return the parsed answer without calls for a text that violates the schema.

    Either the answer was truncated, or the endpoint does not enforce the constraint. Without tools there was no schema,
    so the text is the final answer.
    """
    if not has_tools:
        return ParsedAnswer((), text, "text")
    if list_structured_calls(message):
        return build_unasked_calls_answer(text)
    if text.lstrip().startswith("{"):
        description = f"The answer does not match its schema; nothing was executed: {truncate_snippet(text)}"
        return build_unexecuted_answer(text, "parse_error", description)
    description = "The answer is free text: the endpoint did not keep to the schema."
    return ParsedAnswer((), text, "text", (Finding("constraint_ignored", description, "$.content"),))
