"""The method `text_json`, which requests calls as fenced JSON by an instruction and sends no `tools`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from toolbench.engine.methods.argument_repair import build_parse_error, build_repair_changes, build_repair_finding
from toolbench.engine.methods.inline_reasoning import remove_partial_reasoning, split_message_reasoning
from toolbench.engine.methods.instructions import (
    append_to_system,
    build_instruction,
    get_prompt_version,
    render_call_json,
    render_history_as_text,
)
from toolbench.engine.methods.interface import TextCallMethod
from toolbench.engine.methods.json_in_text import JsonBlock, JsonCall, find_attempted_call, find_blocks, parse_call
from toolbench.engine.methods.parsed_answer import ParsedAnswer, build_unasked_calls_answer, build_unexecuted_answer
from toolbench.engine.methods.streaming_calls import FindCalls, JsonCallWatcher
from toolbench.engine.methods.text_blocks import RepairedBlock, find_bare_blocks, find_repairable_block
from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import Finding, JsonObject, Message
from toolbench.engine.wire_formats.parse_answer import build_openai_call, list_structured_calls, truncate_snippet

CALL_ID = "text_call_1"


class TextJsonMethod(TextCallMethod):
    """Method that reads one call of an answer: the first fenced JSON that names a known tool.

    JSON that is the whole text needs no fence. If there is no such call, the method reads the first object anywhere in
    the text that is a call, or else a call that the policy's repairs make readable. A call that cannot be read, or
    whose end is missing, is reported and never runs.
    """

    method = "text_json"
    prompt_version = get_prompt_version("text_json")

    def __init__(self, repairs: Sequence[str] = ()) -> None:
        self._repairs = tuple(repairs)

    def prepare_body(self, body: JsonObject, tools_json: list[JsonObject], tool_choice: RequestChoice) -> JsonObject:
        """Return the request body; see CallMethod."""
        if not tools_json or tool_choice == "none":
            return dict(body)
        return {**body, "messages": append_to_system(body["messages"], build_instruction(self.method, tools_json))}

    def parse_answer(self, message: Message, tools: Sequence[ToolDefinition]) -> ParsedAnswer:
        """Return the calls and the text of an answer; see CallMethod."""
        text, separated_message = split_message_reasoning(message)
        parsed_answer = self._parse_text(message, text, [tool.name for tool in tools])
        return replace(parsed_answer, message=separated_message) if separated_message else parsed_answer

    def _parse_text(self, message: Message, text: str, names: Sequence[str]) -> ParsedAnswer:
        """Return the parsed answer, with at most one call; `text` is the text of `message` without reasoning."""
        block_calls = _read_calls(find_blocks(text), names) or _read_calls(find_bare_blocks(text, names), names)
        if not block_calls:
            repaired_block = find_repairable_block(text, names, self._repairs)
            return (
                _build_repaired_answer(text, repaired_block)
                if repaired_block
                else _build_answer_without_call(message, text, names)
            )
        block, call = block_calls[0]
        other_text = (text[: block.start] + text[block.end :]).strip()
        findings = tuple(
            _build_findings(block, call, other_text, sum(len(_list_values(block)) for block, _ in block_calls))
        )
        openai_call = build_openai_call(CALL_ID, call.name, call.arguments)
        return ParsedAnswer((openai_call,), other_text, "json_fallback", findings, parsed_arguments=(call.arguments,))

    def build_watcher(self, tools: Sequence[ToolDefinition]) -> Callable[[], FindCalls] | None:
        """Return a factory of call finders; see CallMethod."""
        names = [tool.name for tool in tools]
        return lambda: JsonCallWatcher(lambda text: self._parse_text({}, remove_partial_reasoning(text), names).calls)

    def render_history(self, messages: Sequence[Message]) -> list[Message]:
        """Return the history in the form of this method; see CallMethod."""
        return render_history_as_text(messages, render_call=_render_fenced_call)


def _read_calls(blocks: Iterable[JsonBlock], names: Sequence[str]) -> list[tuple[JsonBlock, JsonCall]]:
    return [(block, call) for block in blocks if (call := parse_call(block.value, names))]


def _list_values(block: JsonBlock) -> list[object]:
    return block.value if isinstance(block.value, list) else [block.value]


def _build_repaired_answer(text: str, repaired_block: RepairedBlock) -> ParsedAnswer:
    """Return the parsed answer for a call that needed repairs; it has no calls if the end of the call is missing."""
    repaired_arguments = repaired_block.repaired_arguments
    parse_error = build_parse_error(
        "json_fallback",
        "The call is no JSON object",
        repaired_block.block_text,
        call_index=0,
        repaired_arguments=repaired_arguments,
    )
    repair_finding = build_repair_finding(repaired_arguments, "$.content")
    if repaired_arguments.is_truncated:
        message = f"The call breaks off; nothing was executed: {truncate_snippet(text)}"
        findings = (Finding("parse_error", message, "$.content"), repair_finding)
        return ParsedAnswer(
            (), text, "text", findings, has_unexecuted_call=True, parse_errors=(replace(parse_error, call=None),)
        )
    other_text = (text[: repaired_block.start] + text[repaired_block.end :]).strip()
    changes = build_repair_changes(repaired_block.block_text, repaired_arguments, "$.content")
    call = build_openai_call(CALL_ID, repaired_block.call.name, repaired_block.call.arguments)
    return ParsedAnswer(
        (call,), other_text, "json_fallback", (repair_finding,), parse_errors=(parse_error,), changes=changes
    )


def _render_fenced_call(name: str, arguments: str) -> str:
    return f"```json\n{render_call_json(name, arguments)}\n```"


def _build_findings(block: JsonBlock, call: JsonCall, other_text: str, call_count: int) -> Iterator[Finding]:
    if not block.is_fenced or not block.is_closed:
        yield Finding("fence_missing", "The call is not in a closed fence; it was read nevertheless.", "$.content")
    if not call.is_exact:
        yield Finding("call_shape", "The call does not have the form that was requested.", "$.content")
    if call_count > 1:
        yield Finding("calls_ignored", f"{call_count} calls in one answer; only the first counts.", "$.content")
    if other_text:
        yield Finding(
            "prose_around_call", f"There is text around the call: {truncate_snippet(other_text)}", "$.content"
        )


def _build_answer_without_call(message: Message, text: str, names: Sequence[str]) -> ParsedAnswer:
    if list_structured_calls(message):
        return build_unasked_calls_answer(text)
    if find_attempted_call(text, names) or _has_unreadable_block(text):
        description = f"No call of a known tool can be read; nothing was executed: {truncate_snippet(text)}"
        return build_unexecuted_answer(text, "parse_error", description)
    return ParsedAnswer((), text, "text")


def _has_unreadable_block(text: str) -> bool:
    """Return whether a block of the text is broken JSON or has the keys of a call, also of an unknown tool."""
    return any(block.is_broken or _has_call_shape(block.value) for block in find_blocks(text))


def _has_call_shape(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str) and "arguments" in value
