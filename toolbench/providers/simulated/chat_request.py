"""Parser of chat requests for simulated models, which finds the question, the tools and the results."""

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
    """Result of a tool call in the messages of a request.

    Attributes:
        name: the tool's name, "" if it is unknown.
        ok: whether the call succeeded; False if the result is a web page in place of data.
        codes: the error codes in the result.
        data: the data in the result, {} if there is none.
    """

    name: str
    ok: bool
    codes: tuple[str, ...] = ()
    data: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """Parsed chat request.

    Attributes:
        seed: the seed, None for none.
        instructions: all system texts, joined by line breaks.
        question: the user message with the current task; without one, the first message; "" without messages.
        functions: the functions of the tools; () if tool_choice is none.
        reports: results of tools since the question.
        turns: number of answers since the question.
        style: form of a call: native, fenced (JSON in a code fence), bare (JSON alone), or a text format's name.
        allows_parallel_calls: whether an answer may have several calls.
        is_tight: whether the token limit is at most `MAX_TIGHT_TOKENS`.
        is_reprompted: whether the last message asks again after a blank answer.
        messages_with_calls: all answers with calls in the messages.
        earlier_text: the texts of the messages before the question, joined by line breaks.
        required_tools: names of the tools of which tool_choice requires at least one; () if it requires none.
    """

    seed: int | None
    instructions: str
    question: str
    functions: tuple[JsonObject, ...]
    reports: tuple[ToolReport, ...]
    turns: int
    style: str
    allows_parallel_calls: bool
    is_tight: bool
    is_reprompted: bool
    messages_with_calls: tuple[Message, ...] = ()
    earlier_text: str = ""
    required_tools: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The instructions and the question, joined by a line break."""
        return f"{self.instructions}\n{self.question}"


def parse_chat_request(body: JsonObject, style: str = "") -> ChatRequest:
    """Parse a chat request.

    Args:
        body: the request body.
        style: form of a call, as in `ChatRequest`; "" to detect it in the request.

    Raises:
        ValueError: `messages` is not a list of objects.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise ValueError("messages must be an array of objects")
    start = _find_task_start(messages)
    functions = tuple(_list_functions(body.get("tools")))
    seed, limits = body.get("seed"), (body.get("max_tokens"), body.get("max_completion_tokens"))
    limit = next((value for value in limits if value is not None), None)
    system_messages = [message for message in messages if message.get("role") in ("system", "developer")]
    instructions = "\n".join(map(join_content, system_messages))
    return ChatRequest(
        seed=seed if isinstance(seed, int) else None,
        instructions=instructions,
        question=join_content(messages[start]) if messages else "",
        functions=functions if body.get("tool_choice") != "none" else (),
        reports=tuple(_parse_reports(messages[start + 1 :])),
        turns=sum(message.get("role") == "assistant" for message in messages[start + 1 :]),
        style=style or _detect_style(body, instructions, has_tools=bool(functions)),
        allows_parallel_calls=body.get("parallel_tool_calls") is not False,
        is_tight=isinstance(limit, int) and limit <= MAX_TIGHT_TOKENS,
        messages_with_calls=tuple(
            message
            for message in messages
            if message.get("role") == "assistant" and isinstance(message.get("tool_calls"), list)
        ),
        earlier_text="\n".join(map(join_content, messages[:start])),
        is_reprompted=start < len(messages) - 1 and _is_reprompt(messages, len(messages) - 1),
        required_tools=_list_required_tools(body.get("tool_choice"), functions),
    )


def join_content(message: Message) -> str:
    """Return a message's content as text; "" if it has none. The texts of an array of parts are joined."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def find_json_objects(text: str) -> Iterator[tuple[int, int, JsonObject]]:
    """Yield (start, end, object) for every JSON object in a text, except for those inside another one."""
    start = text.find("{")
    while start >= 0:
        try:
            json_object, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield start, end, json_object
        start = text.find("{", end)


def _detect_style(body: JsonObject, instructions: str, *, has_tools: bool) -> str:
    if has_tools:
        return NATIVE_STYLE
    if "response_format" in body or "grammar" in body:
        return BARE_STYLE
    return FENCED_STYLE if "```json" in instructions else NATIVE_STYLE


def _list_functions(items: object) -> Iterator[JsonObject]:
    """Yield the functions of tools or calls that have a name."""
    for item in items if isinstance(items, list) else ():
        function = item.get("function") if isinstance(item, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            yield function


def _list_required_tools(choice: object, functions: Sequence[JsonObject]) -> tuple[str, ...]:
    names = tuple(str(function["name"]) for function in functions)
    if isinstance(choice, dict):
        return tuple(name for name in names if name == get_object(choice.get("function")).get("name"))
    return names if choice == "required" else ()


def _find_task_start(messages: Sequence[Message]) -> int:
    """Return the index of the message with the current task.

    It is the last user message that is neither a tool's result nor a request after a blank answer; 0 if there is none.
    """
    for index in range(len(messages) - 1, 0, -1):
        if messages[index].get("role") != "user" or _find_envelopes(join_content(messages[index])):
            continue
        if not _is_reprompt(messages, index):
            return index
    return 0


def _is_reprompt(messages: Sequence[Message], index: int) -> bool:
    """Return whether the message at this index is from the user and follows a blank answer."""
    previous = messages[index - 1]
    is_blank = not join_content(previous).strip() and not previous.get("tool_calls")
    return messages[index].get("role") == "user" and previous.get("role") == "assistant" and is_blank


def _parse_reports(messages: Sequence[Message]) -> Iterator[ToolReport]:
    names: dict[str, str] = {}  # tool names by call id
    for message in messages:
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            for function in _list_functions([call]):
                names[str(call.get("id"))] = function["name"]
        if message.get("role") not in ("tool", "user"):
            continue
        envelopes = _find_envelopes(join_content(message))
        yield from map(_parse_report, envelopes)
        if message.get("role") == "tool" and not envelopes:
            has_error = re.search(r'"?error', join_content(message), re.IGNORECASE) is not None
            yield ToolReport(names.get(str(message.get("tool_call_id")), ""), ok=not has_error)


def _find_envelopes(text: str) -> list[JsonObject]:
    """Return the JSON objects in a text that are results of Toolbench's own tools."""
    return [value for _, _, value in find_json_objects(text) if "ok" in value and "tool_name" in value]


def _parse_report(envelope: JsonObject) -> ToolReport:
    errors: Any = envelope.get("errors") or ()
    codes = tuple(str(error.get("code", "")) for error in errors if isinstance(error, dict))
    data = envelope.get("data")
    is_ok = envelope["ok"] is True and HTML_MARKER not in str(data)
    return ToolReport(str(envelope["tool_name"]), is_ok, codes, get_object(data))
