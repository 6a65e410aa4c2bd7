"""Chat request as a simulated model reads it: the question, the tools, and the results so far."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject, Message

FENCED_STYLE, BARE_STYLE, NATIVE_STYLE = "fenced", "bare", "native"
MAX_TIGHT_TOKENS = 64
HTML_MARKER = "<html"
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class ToolReport:
    """Result of a tool, as far as the conversation shows it. A web page in place of data is no success."""

    name: str
    ok: bool
    codes: tuple[str, ...] = ()
    data: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """Parsed chat request.

    Attributes:
        instructions: all system texts.
        question: the user message with the current task.
        reports: results of tools since the question.
        turns: number of answers since the question.
        style: how a call is written: native, fenced (JSON in a code fence), bare (JSON alone), or a text format's name.
        is_tight: whether the token limit is 64 or less.
        is_reprompted: whether a blank answer was followed by a request for a final one.
        messages_with_calls: all answers with calls in the history.
        before: the texts before the question.
    """

    seed: int | None
    instructions: str
    question: str
    functions: tuple[JsonObject, ...]
    reports: tuple[ToolReport, ...]
    turns: int
    style: str
    parallel: bool
    is_tight: bool
    is_reprompted: bool
    messages_with_calls: tuple[Message, ...] = ()
    before: str = ""

    @property
    def text(self) -> str:
        """Instructions and question."""
        return f"{self.instructions}\n{self.question}"


def parse_chat_request(body: JsonObject, style: str = "") -> ChatRequest:
    """Parse a chat request; `style` is how a call is written where the request itself does not show it.

    Raises:
        ValueError: the body is no chat request; the text is one sentence.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise ValueError("messages must be an array of objects")
    start = _find_task_start(messages)
    functions = tuple(_list_functions(body.get("tools")))
    seed, limit = body.get("seed"), body.get("max_tokens", body.get("max_completion_tokens"))
    instructions = "\n".join(join_content(m) for m in messages if m.get("role") in ("system", "developer"))
    return ChatRequest(
        seed=seed if isinstance(seed, int) else None,
        instructions=instructions,
        question=join_content(messages[start]) if messages else "",
        functions=functions if body.get("tool_choice") != "none" else (),
        reports=tuple(_parse_reports(messages[start + 1 :])),
        turns=sum(message.get("role") == "assistant" for message in messages[start + 1 :]),
        style=style or _detect_style(body, instructions, has_tools=bool(functions)),
        parallel=body.get("parallel_tool_calls") is not False,
        is_tight=isinstance(limit, int) and limit <= MAX_TIGHT_TOKENS,
        messages_with_calls=tuple(
            m for m in messages if m.get("role") == "assistant" and isinstance(m.get("tool_calls"), list)
        ),
        before="\n".join(join_content(message) for message in messages[:start]),
        is_reprompted=start < len(messages) - 1 and _is_plea(messages, len(messages) - 1),
    )


def join_content(message: Message) -> str:
    """Return a message's content as text; an array of parts is joined."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def find_json_objects(text: str) -> Iterator[tuple[int, int, JsonObject]]:
    """Yield every JSON object in a text as (start, end, object), without the objects nested in it."""
    position = text.find("{")
    while position >= 0:
        try:
            found, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            yield position, end, found
        position = text.find("{", end)


def _detect_style(body: JsonObject, instructions: str, *, has_tools: bool) -> str:
    if has_tools:
        return NATIVE_STYLE
    if "response_format" in body or "grammar" in body:
        return BARE_STYLE
    return FENCED_STYLE if "```json" in instructions else NATIVE_STYLE


def _list_functions(items: object) -> Iterator[JsonObject]:
    """Yield the functions of tools, or of calls, that have a name; other items are ignored."""
    for item in items if isinstance(items, list) else ():
        function = item.get("function") if isinstance(item, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            yield function


def _find_task_start(messages: Sequence[Message]) -> int:
    """Return the index of the message with the current task.

    It is the last user message that is neither a tool's result nor a request for a final answer. The messages before it
    are examples.
    """
    for index in range(len(messages) - 1, 0, -1):
        if messages[index].get("role") != "user" or _find_envelopes(join_content(messages[index])):
            continue
        if not _is_plea(messages, index):
            return index
    return 0


def _is_plea(messages: Sequence[Message], index: int) -> bool:
    before = messages[index - 1]
    blank = not join_content(before).strip() and not before.get("tool_calls")
    return messages[index].get("role") == "user" and before.get("role") == "assistant" and blank


def _parse_reports(messages: Sequence[Message]) -> Iterator[ToolReport]:
    names: dict[str, str] = {}
    for message in messages:
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            for function in _list_functions([call]):
                names[str(call.get("id"))] = function["name"]
        if message.get("role") not in ("tool", "user"):
            continue
        found = _find_envelopes(join_content(message))
        yield from (_parse_report(envelope) for envelope in found)
        if message.get("role") == "tool" and not found:
            failed = re.search(r'"?error', join_content(message), re.IGNORECASE) is not None
            yield ToolReport(names.get(str(message.get("tool_call_id")), ""), ok=not failed)


def _find_envelopes(text: str) -> list[JsonObject]:
    return [found for _, _, found in find_json_objects(text) if "ok" in found and "tool_name" in found]


def _parse_report(envelope: JsonObject) -> ToolReport:
    errors: Any = envelope.get("errors") or ()
    codes = tuple(str(error.get("code", "")) for error in errors if isinstance(error, dict))
    data = envelope.get("data")
    good = envelope["ok"] is True and HTML_MARKER not in str(data)
    return ToolReport(str(envelope["tool_name"]), good, codes, get_object(data))
