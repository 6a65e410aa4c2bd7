"""Asking for calls by constraint: the endpoint is held to a schema of the calls that may be made, so that every answer
is a call or a final answer. Valid does not mean right."""

from collections.abc import Sequence

from toolbench.engine.call_schema import call_schema
from toolbench.engine.errors import BadJson
from toolbench.engine.json_text import read_json, write_json
from toolbench.engine.messages import Finding, JsonObject, Message, ToolCall
from toolbench.engine.prompting import (
    call_json,
    instruction,
    prompt_version,
    result_message,
    told_history,
    with_system,
)
from toolbench.engine.reading import Read, call_in, openai_call, snippet, structured_calls, text_of
from toolbench.engine.tools import ToolDefinition

CONSTRAINTS = ("response_format", "grammar")


class Constrained:
    """The schema goes out as `response_format`, or as `grammar` in llama.cpp's LLGuidance dialect with compact white
    space. A final answer is allowed unless the tool choice is `required` or names a tool. Without tools nothing is
    constrained."""

    method = "constrained"
    prompt_version = prompt_version("constrained")

    def __init__(self, constraint: str) -> None:
        self.constraint = constraint

    def shape(
        self,
        body: JsonObject,
        tools: Sequence[ToolDefinition],
        tools_json: list[JsonObject],
        tool_choice: str | JsonObject | None,
    ) -> JsonObject:
        if not tools_json or tool_choice == "none":
            return dict(body)
        final = not isinstance(tool_choice, dict) and tool_choice != "required"
        schema = call_schema(_chosen(tools_json, tool_choice), final=final)
        messages = with_system(body["messages"], instruction(self.method, tools_json, final=final))
        return {**body, "messages": messages, **self._asked(schema)}

    def read(self, message: Message, tools: Sequence[ToolDefinition]) -> Read:
        text = text_of(message)
        try:
            value = read_json(text)
        except BadJson:
            return _outside(message, text, asked=bool(tools))
        if isinstance(value, dict) and isinstance(value.get("final"), str):
            return Read((), value["final"], "constrained")
        call = call_in(value, [tool.name for tool in tools])
        if call is None:
            return _outside(message, text, asked=bool(tools))
        return Read((openai_call("constrained_call_1", call),), "", "constrained")

    def assistant_message(self, message: Message, calls: Sequence[JsonObject]) -> Message:
        rest = {key: value for key, value in message.items() if key != "tool_calls"}
        return {"role": "assistant", **rest}

    def result_messages(self, call: ToolCall, content: str) -> list[Message]:
        return [result_message(call, content)]

    def render_history(self, messages: Sequence[Message]) -> list[Message]:
        return told_history(messages, as_call=call_json, as_final=_final)

    def _asked(self, schema: JsonObject) -> JsonObject:
        if self.constraint == "grammar":
            compact = {"x-guidance": {"whitespace_flexible": False}, **schema}
            return {"grammar": f"%llguidance {{}}\nstart: %json {write_json(compact)}"}
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}


def _chosen(tools_json: list[JsonObject], tool_choice: str | JsonObject | None) -> list[JsonObject]:
    """The tools a named tool choice leaves; all where it names none of them."""
    function = tool_choice.get("function") if isinstance(tool_choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return [tool for tool in tools_json if tool["function"]["name"] == name] or tools_json


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
