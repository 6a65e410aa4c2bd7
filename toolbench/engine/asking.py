"""The ways of asking for calls. Each shapes a request, reads an answer and writes history in its own form; the loop
does not know which one it uses."""

from collections.abc import Sequence
from typing import Protocol

from toolbench.engine.constrain import CONSTRAINTS, Constrained
from toolbench.engine.errors import PlanError
from toolbench.engine.messages import Finding, JsonObject, Message, ToolCall
from toolbench.engine.prompting import instruction, prompt_version, with_system
from toolbench.engine.reading import Read, meant_call, structured_calls, text_of
from toolbench.engine.text_json import TextJson
from toolbench.engine.tools import ToolDefinition

__all__ = ["Asking", "Native", "Read", "ask_for"]

ToolChoice = str | JsonObject | None


class Asking(Protocol):
    """`prompt_version` names the instruction that is sent, "" for none."""

    method: str
    prompt_version: str

    def shape(
        self, body: JsonObject, tools: Sequence[ToolDefinition], tools_json: list[JsonObject], tool_choice: ToolChoice
    ) -> JsonObject:
        """A new body that asks for calls of these tools; without tools, the body as it is. `tools_json` is what the
        transforms made of them."""
        ...

    def read(self, message: Message, tools: Sequence[ToolDefinition]) -> Read:
        """The calls and the text of an answer."""
        ...

    def assistant_message(self, message: Message, calls: Sequence[JsonObject]) -> Message:
        """The answer as it stands in the history, with only the calls that were kept."""
        ...

    def result_messages(self, call: ToolCall, content: str) -> list[Message]:
        """The messages that give a call's result back to the model."""
        ...

    def render_history(self, messages: Sequence[Message]) -> list[Message]:
        """Examples written in OpenAI's shape, in this method's own form."""
        ...


class Native:
    """Tools travel in the request's own field and calls come back in theirs. A call that the model writes into its
    text instead is reported and never runs. When `instructed`, the system message says the opposite of text_json's:
    fill in parameters, write no JSON."""

    method = "native"

    def __init__(self, *, instructed: bool = False) -> None:
        self.prompt_version = prompt_version(self.method) if instructed else ""

    def shape(
        self, body: JsonObject, tools: Sequence[ToolDefinition], tools_json: list[JsonObject], tool_choice: ToolChoice
    ) -> JsonObject:
        if not tools_json:
            return dict(body)
        chosen = {} if tool_choice is None else {"tool_choice": tool_choice}
        told = with_system(body["messages"], instruction(self.method, tools_json)) if self.prompt_version else None
        return {**body, **({"messages": told} if told else {}), "tools": tools_json, **chosen}

    def read(self, message: Message, tools: Sequence[ToolDefinition]) -> Read:
        calls, text = structured_calls(message), text_of(message)
        if calls:
            return Read(calls, text, "tool_use")
        meant = meant_call(text, [tool.name for tool in tools])
        if meant is None:
            return Read((), text, "text")
        said = f"The answer spells a call in its text ({meant}) and has no tool_calls; it was not executed."
        return Read((), text, "text", (Finding("call_in_text", said, "$.content"),), not_executed=True)

    def assistant_message(self, message: Message, calls: Sequence[JsonObject]) -> Message:
        rest = {key: value for key, value in message.items() if key != "tool_calls"}
        rest.setdefault("role", "assistant")
        return {**rest, "tool_calls": list(calls)} if calls else rest

    def result_messages(self, call: ToolCall, content: str) -> list[Message]:
        return [{"role": "tool", "tool_call_id": call.id, "content": content}]

    def render_history(self, messages: Sequence[Message]) -> list[Message]:
        return list(messages)


def ask_for(
    method: str,
    constraint: str = "response_format",
    *,
    instructed: bool = False,
    repairs: Sequence[str] = (),
) -> Asking:
    """The way of asking called native, text_json or constrained. `constraint` is response_format or grammar and matters
    to constrained alone; `instructed` gives native its own instruction; text_json reads blocks with these repairs.
    Raises PlanError for any other."""
    if method == "native":
        return Native(instructed=instructed)
    if method == "text_json":
        return TextJson(repairs)
    if method == "constrained" and constraint in CONSTRAINTS:
        return Constrained(constraint)
    raise PlanError(f"No way of asking for {method!r} with {constraint!r}.")
