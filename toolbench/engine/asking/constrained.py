"""Asking for calls by constraint: the endpoint is held to a schema or a grammar of the calls that may be made, so that
every answer is a call or a final answer. Valid does not mean right."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from toolbench.engine.asking.prompting import (
    call_json,
    instruction,
    prompt_version,
    result_message,
    told_history,
    with_system,
)
from toolbench.engine.asking.read import Read
from toolbench.engine.asking.thoughts import said_so_far, thought_apart
from toolbench.engine.asking.watching import JsonWatch, Watch
from toolbench.engine.asking.written_calls import WrittenCall, call_in
from toolbench.engine.constrain.answers import ANSWER, chosen, may_end
from toolbench.engine.constrain.compiling import Asked, Compiled, compile_constraint
from toolbench.engine.constrain.strict import without_added_nulls
from toolbench.engine.errors import BadJson
from toolbench.engine.json_text import read_json, write_json
from toolbench.engine.messages import Finding, JsonObject, Message, ToolCall, TransformChange, without_calls
from toolbench.engine.tools.choice import WireChoice
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.wires.reading import openai_call, snippet, structured_calls, text_of


class Constrained:
    """`constraint` is one of CONSTRAINTS and says how the endpoint is told. A final answer is allowed unless the tool
    choice is `required` or names a tool. Without tools nothing is constrained."""

    method = "constrained"
    prompt_version = prompt_version("constrained")

    def __init__(self, constraint: str, asked: Asked | None = None) -> None:
        self.constraint = constraint
        self._asked = asked or Asked()

    def shape(
        self, body: JsonObject, tools: Sequence[ToolDefinition], tools_json: list[JsonObject], tool_choice: WireChoice
    ) -> JsonObject:
        if not tools_json or tool_choice == "none":
            return dict(body)
        told = instruction(self.method, tools_json, final=may_end(tool_choice), several=self._asked.many > 1)
        messages = with_system(body["messages"], told)
        return {**body, "messages": messages, **self._compiled(tools_json, tool_choice).fields}

    def read(self, message: Message, tools: Sequence[ToolDefinition]) -> Read:
        read = self._read(message, text_of(message), tools)
        if read.path == "constrained":
            return read
        text, apart = thought_apart(message)
        return replace(self._read(message, text, tools), message=apart) if apart else read

    def _read(self, message: Message, text: str, tools: Sequence[ToolDefinition]) -> Read:
        try:
            value = read_json(text)
        except BadJson:
            return _outside(message, text, asked=bool(tools))
        if self.constraint == "strict" and isinstance(value, dict):
            value = value.get(ANSWER, value)
        if isinstance(value, dict) and isinstance(value.get("final"), str):
            return Read((), value["final"], "constrained")
        calls = self._calls(value, tools)
        if not calls:
            return _outside(message, text, asked=bool(tools))
        made = (
            openai_call(f"constrained_call_{n}", call.name, call.arguments) for n, call in enumerate(calls, start=1)
        )
        return Read(tuple(made), "", "constrained", values=tuple(call.arguments for call in calls))

    def watch(self, tools: Sequence[ToolDefinition]) -> Callable[[], Watch] | None:
        return lambda: JsonWatch(lambda text: self._read({}, said_so_far(text), tools).calls)

    def assistant_message(self, message: Message, calls: Sequence[JsonObject]) -> Message:
        return {"role": "assistant", **without_calls(message)}

    def result_messages(self, call: ToolCall, content: str) -> list[Message]:
        return [result_message(call, content)]

    def render_history(self, messages: Sequence[Message]) -> list[Message]:
        return told_history(messages, as_call=call_json, as_final=_final)

    def dropped(self, tools_json: list[JsonObject], tool_choice: WireChoice) -> tuple[TransformChange, ...]:
        if not tools_json or tool_choice == "none":
            return ()
        return tuple(dropped.as_change() for dropped in self._compiled(tools_json, tool_choice).dropped)

    def _compiled(self, tools_json: list[JsonObject], tool_choice: WireChoice) -> Compiled:
        asked = replace(self._asked, final=may_end(tool_choice))
        return compile_constraint(chosen(tools_json, tool_choice), self.constraint, asked)

    def _calls(self, value: object, tools: Sequence[ToolDefinition]) -> list[WrittenCall]:
        """The calls of an answer; none where one of several is of no known tool."""
        schemas = {tool.name: tool.parameters for tool in tools}
        several = value.get("calls") if isinstance(value, dict) and self._asked.many > 1 else None
        found = [call_in(one, list(schemas)) for one in (several if isinstance(several, list) else [value])]
        calls = [call for call in found if call is not None]
        if len(calls) < len(found):
            return []
        if self.constraint != "strict":
            return calls
        return [WrittenCall(c.name, without_added_nulls(c.arguments, schemas[c.name]), c.exact) for c in calls]


def _final(text: str) -> str:
    return write_json({"final": text})


def _outside(message: Message, text: str, *, asked: bool) -> Read:
    """An answer that is not of the schema: cut off, or of an endpoint that passes over constraints."""
    if not asked:
        return Read((), text, "text")
    if structured_calls(message):
        said = "The answer has tool_calls although no tools were sent; they were not executed."
        return Read((), text, "text", (Finding("unasked_tool_calls", said, "$.tool_calls"),), not_executed=True)
    if text.lstrip().startswith("{"):
        said = f"The answer is not of the schema it was held to; nothing was executed: {snippet(text)}"
        return Read((), text, "text", (Finding("parse_error", said, "$.content"),), not_executed=True)
    said = "The answer is free text: the endpoint did not keep to the schema."
    return Read((), text, "text", (Finding("constraint_ignored", said, "$.content"),))
