"""Asking for calls in words: one fixed instruction, one fenced JSON block per call, no `tools` in the request."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from toolbench.engine.asking.mending import parse_error, repair_changes, repair_finding
from toolbench.engine.asking.prompting import (
    call_json,
    instruction,
    prompt_version,
    result_message,
    told_history,
    with_system,
)
from toolbench.engine.asking.read import Read
from toolbench.engine.asking.text_blocks import MendedBlock, bare_blocks, mend_block
from toolbench.engine.asking.thoughts import said_so_far, thought_apart
from toolbench.engine.asking.watching import JsonWatch, Watch
from toolbench.engine.asking.written_calls import Block, WrittenCall, blocks_in, call_in, meant_call
from toolbench.engine.messages import Finding, JsonObject, Message, ToolCall, TransformChange, without_calls
from toolbench.engine.tools.choice import WireChoice
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.wires.reading import openai_call, snippet, structured_calls

CALL_ID = "text_call_1"


class TextJson:
    """The first fenced JSON object that names a known tool is the call; failing that, an object outside of fences, and
    then what the named repairs make of the text. Everything else is text, and a call that cannot be read, or broke off,
    is reported and never runs."""

    method = "text_json"
    prompt_version = prompt_version("text_json")

    def __init__(self, repairs: Sequence[str] = ()) -> None:
        self._repairs = tuple(repairs)

    def shape(
        self, body: JsonObject, tools: Sequence[ToolDefinition], tools_json: list[JsonObject], tool_choice: WireChoice
    ) -> JsonObject:
        if not tools_json or tool_choice == "none":
            return dict(body)
        return {**body, "messages": with_system(body["messages"], instruction(self.method, tools_json))}

    def read(self, message: Message, tools: Sequence[ToolDefinition]) -> Read:
        text, apart = thought_apart(message)
        read = self._read(message, text, [tool.name for tool in tools])
        return replace(read, message=apart) if apart else read

    def _read(self, message: Message, text: str, names: Sequence[str]) -> Read:
        found = _calls(blocks_in(text), names) or _calls(bare_blocks(text, names), names)
        if not found:
            mended = mend_block(text, names, self._repairs)
            return _mended(text, mended) if mended else _without_call(message, text, names)
        block, call = found[0]
        rest = (text[: block.start] + text[block.end :]).strip()
        findings = tuple(_remarks(block, call, rest, sum(len(_listed(block)) for block, _ in found)))
        made = openai_call(CALL_ID, call.name, call.arguments)
        return Read((made,), rest, "json_fallback", findings, values=(call.arguments,))

    def watch(self, tools: Sequence[ToolDefinition]) -> Callable[[], Watch] | None:
        names = [tool.name for tool in tools]
        return lambda: JsonWatch(lambda text: self._read({}, said_so_far(text), names).calls)

    def assistant_message(self, message: Message, calls: Sequence[JsonObject]) -> Message:
        return {"role": "assistant", **without_calls(message)}

    def result_messages(self, call: ToolCall, content: str) -> list[Message]:
        return [result_message(call, content)]

    def render_history(self, messages: Sequence[Message]) -> list[Message]:
        return told_history(messages, as_call=_fenced)

    def dropped(self, tools_json: list[JsonObject], tool_choice: WireChoice) -> tuple[TransformChange, ...]:
        return ()


def _calls(blocks: Iterable[Block], names: Sequence[str]) -> list[tuple[Block, WrittenCall]]:
    return [(block, call) for block in blocks if (call := call_in(block.value, names))]


def _listed(block: Block) -> list[object]:
    return block.value if isinstance(block.value, list) else [block.value]


def _mended(text: str, mended: MendedBlock) -> Read:
    """A call that needed repairs; one that broke off is no call."""
    found = mended.repaired
    error = parse_error("json_fallback", "The call is no JSON object", mended.written, call=0, repaired=found)
    noted = repair_finding(found, "$.content")
    if found.truncated:
        said = f"The call breaks off; nothing was executed: {snippet(text)}"
        findings = (Finding("parse_error", said, "$.content"), noted)
        return Read((), text, "text", findings, not_executed=True, parse_errors=(replace(error, call=None),))
    rest = (text[: mended.start] + text[mended.end :]).strip()
    changes = repair_changes(mended.written, found, "$.content")
    call = openai_call(CALL_ID, mended.call.name, mended.call.arguments)
    return Read((call,), rest, "json_fallback", (noted,), parse_errors=(error,), changes=changes)


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
