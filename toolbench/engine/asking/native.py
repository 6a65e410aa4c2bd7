"""Asking for calls in the request's own field, as most endpoints take them."""

from collections.abc import Callable, Sequence

from toolbench.engine.asking.prompting import instruction, prompt_version, with_system
from toolbench.engine.asking.read import Read
from toolbench.engine.asking.watching import Watch
from toolbench.engine.asking.written_calls import meant_call
from toolbench.engine.messages import Finding, JsonObject, Message, ToolCall, TransformChange, without_calls
from toolbench.engine.tools.choice import WireChoice
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.wires.reading import structured_calls, text_of


class Native:
    """Tools travel in the request's own field and calls come back in theirs. A call that the model writes into its
    text instead is reported and never runs. When `instructed`, the system message says the opposite of text_json's:
    fill in parameters, write no JSON."""

    method = "native"

    def __init__(self, *, instructed: bool = False) -> None:
        self.prompt_version = prompt_version(self.method) if instructed else ""

    def shape(
        self, body: JsonObject, tools: Sequence[ToolDefinition], tools_json: list[JsonObject], tool_choice: WireChoice
    ) -> JsonObject:
        if not tools_json:
            return dict(body)
        told = with_system(body["messages"], instruction(self.method, tools_json)) if self.prompt_version else None
        return {**body, **({"messages": told} if told else {}), "tools": tools_json, "tool_choice": tool_choice}

    def read(self, message: Message, tools: Sequence[ToolDefinition]) -> Read:
        calls, text = structured_calls(message), text_of(message)
        if calls:
            return Read(calls, text, "tool_use")
        meant = meant_call(text, [tool.name for tool in tools])
        if meant is None:
            return Read((), text, "text")
        said = f"The answer spells a call in its text ({meant}) and has no tool_calls; it was not executed."
        return Read((), text, "text", (Finding("call_in_text", said, "$.content"),), not_executed=True)

    def watch(self, tools: Sequence[ToolDefinition]) -> Callable[[], Watch] | None:
        return None

    def assistant_message(self, message: Message, calls: Sequence[JsonObject]) -> Message:
        rest = without_calls(message)
        rest.setdefault("role", "assistant")
        return {**rest, "tool_calls": list(calls)} if calls else rest

    def result_messages(self, call: ToolCall, content: str) -> list[Message]:
        return [{"role": "tool", "tool_call_id": call.id, "content": content}]

    def render_history(self, messages: Sequence[Message]) -> list[Message]:
        return list(messages)

    def dropped(self, tools_json: list[JsonObject], tool_choice: WireChoice) -> tuple[TransformChange, ...]:
        return ()
