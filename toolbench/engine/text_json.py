"""Asking for calls in words: one fixed instruction, one fenced JSON block per call, no `tools` in the request."""

from collections.abc import Iterator, Sequence

from toolbench.engine.messages import Finding, JsonObject, Message, ToolCall
from toolbench.engine.prompting import (
    call_json,
    instruction,
    prompt_version,
    result_message,
    told_history,
    with_system,
)
from toolbench.engine.reading import (
    Block,
    Read,
    WrittenCall,
    blocks_in,
    call_in,
    meant_call,
    openai_call,
    snippet,
    structured_calls,
    text_of,
)
from toolbench.engine.tools import ToolDefinition


class TextJson:
    """The first fenced JSON object that names a known tool is the call; an answer that is nothing but such an object
    counts too. Everything else is text, and a call that cannot be read is reported and never runs."""

    method = "text_json"
    prompt_version = prompt_version("text_json")

    def shape(
        self,
        body: JsonObject,
        tools: Sequence[ToolDefinition],
        tools_json: list[JsonObject],
        tool_choice: str | JsonObject | None,
    ) -> JsonObject:
        if not tools_json or tool_choice == "none":
            return dict(body)
        return {**body, "messages": with_system(body["messages"], instruction(self.method, tools_json))}

    def read(self, message: Message, tools: Sequence[ToolDefinition]) -> Read:
        text, names = text_of(message), [tool.name for tool in tools]
        found = [(block, call) for block in blocks_in(text) if (call := call_in(block.value, names))]
        if not found:
            return _without_call(message, text, names)
        block, call = found[0]
        rest = (text[: block.start] + text[block.end :]).strip()
        findings = tuple(_remarks(block, call, rest, len(found)))
        return Read((openai_call("text_call_1", call),), rest, "json_fallback", findings)

    def assistant_message(self, message: Message, calls: Sequence[JsonObject]) -> Message:
        rest = {key: value for key, value in message.items() if key != "tool_calls"}
        return {"role": "assistant", **rest}

    def result_messages(self, call: ToolCall, content: str) -> list[Message]:
        return [result_message(call, content)]

    def render_history(self, messages: Sequence[Message]) -> list[Message]:
        return told_history(messages, as_call=_fenced)


def _fenced(name: str, arguments: str) -> str:
    return f"```json\n{call_json(name, arguments)}\n```"


def _remarks(block: Block, call: WrittenCall, rest: str, calls: int) -> Iterator[Finding]:
    if not block.fenced or not block.closed:
        yield Finding("fence_missing", "The call stands without its fence; it was read all the same.", "$.content")
    if not call.exact:
        yield Finding("call_shape", "The call has another shape than the one asked for.", "$.content")
    if calls > 1:
        yield Finding("calls_ignored", f"{calls} calls in one answer; only the first counts.", "$.content")
    if rest:
        yield Finding("prose_around_call", f"There is text around the call: {snippet(rest)}", "$.content")


def _without_call(message: Message, text: str, names: Sequence[str]) -> Read:
    if structured_calls(message):
        said = "The answer has tool_calls although no tools were sent; they were not executed."
        return Read((), text, "text", (Finding("unasked_tool_calls", said, "$.tool_calls"),), not_executed=True)
    if meant_call(text, names) or _odd_block(text):
        said = f"No call of a known tool can be read; nothing was executed: {snippet(text)}"
        return Read((), text, "text", (Finding("parse_error", said, "$.content"),), not_executed=True)
    return Read((), text, "text")


def _odd_block(text: str) -> bool:
    """Whether a block of the text is broken JSON or spells a call of a tool that nobody knows."""
    return any(block.broken or _names_something(block.value) for block in blocks_in(text))


def _names_something(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str) and "arguments" in value
