"""Asking for calls by template: the conversation is rendered with a model family's own turn tokens and goes, as one
prompt, to an endpoint that completes raw text. What is sent is exactly what the model reads."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.formats import (
    AUTO,
    PromptMessage,
    TextCall,
    TextDecoder,
    get_turn_spec,
    parse,
    render_conversation,
    stream,
)
from toolbench.engine.methods.json_in_text import UNREADABLE_CODES
from toolbench.engine.methods.parsed_answer import ParsedAnswer
from toolbench.engine.methods.streaming_calls import FindCalls
from toolbench.engine.strict_json import get_object, read_json
from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import (
    Finding,
    JsonObject,
    Message,
    ToolCall,
    TransformChange,
    get_called_function,
    remove_calls,
)
from toolbench.engine.wire_formats.parse_answer import (
    build_openai_call,
    get_message_text,
    list_structured_calls,
    truncate_snippet,
)

DEFAULT_FORMAT = "hermes"  # where nothing says which: ChatML is what most small models speak
_REASONING_FIELDS = ("reasoning_content", "reasoning")


class TemplateMethod:
    """`text_format` names the format that is written and read; auto is hermes; `guess_untyped` is as in Known. Messages
    stay in OpenAI's shape until they are sent. A call that cannot be read is reported and never runs. Raises PlanError
    for a format whose turn tokens are not known."""

    method = "template"

    def __init__(self, text_format: str = AUTO, *, guess_untyped: bool = False) -> None:
        self.text_format = DEFAULT_FORMAT if text_format == AUTO else text_format
        self.prompt_version = f"{self.text_format} 2"
        self._guess_untyped = guess_untyped
        self._stops = get_turn_spec(self.text_format).stops

    def prepare_body(
        self,
        body: JsonObject,
        tools: Sequence[ToolDefinition],
        tools_json: list[JsonObject],
        tool_choice: RequestChoice,
    ) -> JsonObject:
        offered = [] if tool_choice == "none" else tools_json
        prompt = render_conversation(
            list(_to_prompt_messages(body["messages"])), format=self.text_format, tools=offered
        )
        rest = {key: value for key, value in body.items() if key != "messages"}
        return {**rest, "prompt": prompt, "stop": list(self._stops)}

    def read(self, message: Message, tools: Sequence[ToolDefinition]) -> ParsedAnswer:
        text = get_message_text(message)
        parsed = parse(text, format=self.text_format, tools=tools, guess_untyped=self._guess_untyped)
        calls = tuple(map(_to_openai_call, parsed.calls))
        reasoning = {"reasoning_content": parsed.reasoning} if parsed.reasoning else {}
        unread = tuple(_build_parse_error(found, text) for found in parsed.findings if found.code in UNREADABLE_CODES)
        return ParsedAnswer(
            calls,
            parsed.text,
            "template" if calls else "text",
            (*parsed.findings, *unread),
            not_executed=bool(unread) and not calls,
            message={**message, "content": parsed.text, **reasoning},
            values=tuple(call.arguments for call in parsed.calls),
        )

    def watch(self, tools: Sequence[ToolDefinition]) -> Callable[[], FindCalls] | None:
        return lambda: _build_watch(stream(self.text_format, tools, guess_untyped=self._guess_untyped))

    def assistant_message(self, message: Message, calls: Sequence[JsonObject]) -> Message:
        return {"role": "assistant", **remove_calls(message), **({"tool_calls": list(calls)} if calls else {})}

    def result_messages(self, call: ToolCall, content: str) -> list[Message]:
        return [{"role": "tool", "tool_call_id": call.id, "content": content}]

    def render_history(self, messages: Sequence[Message]) -> list[Message]:
        return list(messages)

    def dropped(self, tools_json: list[JsonObject], tool_choice: RequestChoice) -> tuple[TransformChange, ...]:
        return ()


def _build_watch(decoder: TextDecoder) -> FindCalls:
    return lambda text: [_to_openai_call(piece.call) for piece in decoder.feed(text) if piece.call is not None]


def _build_parse_error(trouble: Finding, text: str) -> Finding:
    said = trouble.message.partition(";")[0]
    return Finding("parse_error", f"{said}; it was not executed: {truncate_snippet(text)}", trouble.path)


def _to_openai_call(call: TextCall) -> JsonObject:
    return build_openai_call(call.id, call.name, call.arguments)


def _to_prompt_messages(messages: Iterable[Message]) -> Iterator[PromptMessage]:
    """Messages of OpenAI's shape as the formats take them. A result without a call is what the user says."""
    made: dict[str, TextCall] = {}
    for message in messages:
        text = get_message_text(message)
        match message.get("role"):
            case "assistant":
                calls = tuple(_to_text_call(call) for call in list_structured_calls(message))
                made |= {call.id: call for call in calls}
                yield PromptMessage("assistant", text, _get_reasoning(message) if calls else "", calls)
            case "tool" if (answered := made.get(str(message.get("tool_call_id")))) is not None:
                yield PromptMessage("result", text, calls=(answered,))
            case "system" | "developer":
                yield PromptMessage("system", text)
            case _:
                yield PromptMessage("user", text)


def _get_reasoning(message: Message) -> str:
    """What the assistant thought before it called: it is told again while its tools run."""
    return next((said for key in _REASONING_FIELDS if isinstance(said := message.get(key), str)), "")


def _to_text_call(call: JsonObject) -> TextCall:
    """Arguments that are no object are written as an empty one."""
    function = get_called_function(call)
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = read_json(arguments)
        except InvalidJsonError:
            arguments = None
    given = get_object(arguments)
    return TextCall(str(function.get("name") or ""), given, str(call.get("id") or ""))
