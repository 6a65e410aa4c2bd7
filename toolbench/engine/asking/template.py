"""Asking for calls by template: the conversation is rendered with a model family's own turn tokens and goes, as one
prompt, to an endpoint that completes raw text. What is sent is exactly what the model reads."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from toolbench.engine.asking.read import Read
from toolbench.engine.asking.watching import Watch
from toolbench.engine.asking.written_calls import TROUBLE
from toolbench.engine.errors import BadJson
from toolbench.engine.formats import AUTO, Decoder, Said, TextCall, parse, render_conversation, stream, turns_of
from toolbench.engine.json_text import read_json
from toolbench.engine.messages import (
    Finding,
    JsonObject,
    Message,
    ToolCall,
    TransformChange,
    function_in,
    without_calls,
)
from toolbench.engine.tools.choice import WireChoice
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.wires.reading import openai_call, snippet, structured_calls, text_of

FORMAT = "hermes"  # where nothing says which: ChatML is what most small models speak
_REASONING = ("reasoning_content", "reasoning")


class Template:
    """`text_format` names the format that is written and read; auto is hermes; `guess_untyped` is as in Known. Messages
    stay in OpenAI's shape until they are sent. A call that cannot be read is reported and never runs. Raises PlanError
    for a format whose turn tokens are not known."""

    method = "template"

    def __init__(self, text_format: str = AUTO, *, guess_untyped: bool = False) -> None:
        self.text_format = FORMAT if text_format == AUTO else text_format
        self.prompt_version = f"{self.text_format} 2"
        self._guess_untyped = guess_untyped
        self._stops = turns_of(self.text_format).stops

    def shape(
        self, body: JsonObject, tools: Sequence[ToolDefinition], tools_json: list[JsonObject], tool_choice: WireChoice
    ) -> JsonObject:
        offered = [] if tool_choice == "none" else tools_json
        prompt = render_conversation(list(_said(body["messages"])), format=self.text_format, tools=offered)
        rest = {key: value for key, value in body.items() if key != "messages"}
        return {**rest, "prompt": prompt, "stop": list(self._stops)}

    def read(self, message: Message, tools: Sequence[ToolDefinition]) -> Read:
        text = text_of(message)
        parsed = parse(text, format=self.text_format, tools=tools, guess_untyped=self._guess_untyped)
        calls = tuple(map(_openai, parsed.calls))
        reasoning = {"reasoning_content": parsed.reasoning} if parsed.reasoning else {}
        unread = tuple(_parse_error(found, text) for found in parsed.findings if found.code in TROUBLE)
        return Read(
            calls,
            parsed.text,
            "template" if calls else "text",
            (*parsed.findings, *unread),
            not_executed=bool(unread) and not calls,
            message={**message, "content": parsed.text, **reasoning},
            values=tuple(call.arguments for call in parsed.calls),
        )

    def watch(self, tools: Sequence[ToolDefinition]) -> Callable[[], Watch] | None:
        return lambda: _watch(stream(self.text_format, tools, guess_untyped=self._guess_untyped))

    def assistant_message(self, message: Message, calls: Sequence[JsonObject]) -> Message:
        return {"role": "assistant", **without_calls(message), **({"tool_calls": list(calls)} if calls else {})}

    def result_messages(self, call: ToolCall, content: str) -> list[Message]:
        return [{"role": "tool", "tool_call_id": call.id, "content": content}]

    def render_history(self, messages: Sequence[Message]) -> list[Message]:
        return list(messages)

    def dropped(self, tools_json: list[JsonObject], tool_choice: WireChoice) -> tuple[TransformChange, ...]:
        return ()


def _watch(decoder: Decoder) -> Watch:
    return lambda text: [_openai(piece.call) for piece in decoder.feed(text) if piece.call is not None]


def _parse_error(trouble: Finding, text: str) -> Finding:
    said = trouble.message.partition(";")[0]
    return Finding("parse_error", f"{said}; it was not executed: {snippet(text)}", trouble.path)


def _openai(call: TextCall) -> JsonObject:
    return openai_call(call.id, call.name, call.arguments)


def _said(messages: Iterable[Message]) -> Iterator[Said]:
    """Messages of OpenAI's shape as the formats take them. A result without a call is what the user says."""
    made: dict[str, TextCall] = {}
    for message in messages:
        text = text_of(message)
        match message.get("role"):
            case "assistant":
                calls = tuple(_text_call(call) for call in structured_calls(message))
                made |= {call.id: call for call in calls}
                yield Said("assistant", text, _reasoning(message) if calls else "", calls)
            case "tool" if (answered := made.get(str(message.get("tool_call_id")))) is not None:
                yield Said("result", text, calls=(answered,))
            case "system" | "developer":
                yield Said("system", text)
            case _:
                yield Said("user", text)


def _reasoning(message: Message) -> str:
    """What the assistant thought before it called: it is told again while its tools run."""
    return next((said for key in _REASONING if isinstance(said := message.get(key), str)), "")


def _text_call(call: JsonObject) -> TextCall:
    """Arguments that are no object are written as an empty one."""
    function = function_in(call)
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = read_json(arguments)
        except BadJson:
            arguments = None
    given = arguments if isinstance(arguments, dict) else {}
    return TextCall(str(function.get("name") or ""), given, str(call.get("id") or ""))
