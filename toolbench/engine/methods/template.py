"""The method `template`, which sends the conversation as one prompt with a model family's turn tokens.

The endpoint completes raw text, so the model reads exactly the prompt that is sent.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from toolbench.engine.formats import (
    AUTO,
    ParsedText,
    PromptMessage,
    TextCall,
    TextDecoder,
    get_turn_spec,
    parse,
    render_conversation,
    stream,
)
from toolbench.engine.formats.registry import get_format
from toolbench.engine.methods.interface import CallMethod
from toolbench.engine.methods.json_in_text import UNREADABLE_CODES
from toolbench.engine.methods.parsed_answer import ParsedAnswer
from toolbench.engine.methods.streaming_calls import FindCalls
from toolbench.engine.strict_json import find_object, get_object
from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import Finding, JsonObject, Message, get_called_function, remove_calls
from toolbench.engine.wire_formats.parse_answer import (
    add_reasoning,
    build_openai_call,
    get_message_text,
    list_structured_calls,
    truncate_snippet,
)

DEFAULT_FORMAT = "hermes"  # the text format for `auto`: most small models use its ChatML turns
_REASONING_FIELDS = ("reasoning_content", "reasoning")


class TemplateMethod(CallMethod):
    """Method that renders the prompt and parses calls in one text format.

    Messages stay in OpenAI's format until they are sent. A call that cannot be read is reported and never runs.

    Args:
        text_format: name of the text format; `auto` means hermes.
        guess_untyped: whether a value in a tag, whose type no schema states, is read as JSON if it is valid JSON.

    Raises:
        PlanError: there is no such text format, or its turn tokens are not known.
    """

    method = "template"

    def __init__(self, text_format: str = AUTO, *, guess_untyped: bool = False) -> None:
        self.text_format = DEFAULT_FORMAT if text_format == AUTO else text_format
        self.prompt_version = f"{self.text_format} 2"  # 2: version of the turn templates
        self._guess_untyped = guess_untyped
        self._stop_texts = get_turn_spec(self.text_format).stop_texts
        blocks = [block for block in get_format(self.text_format).blocks if block.end_markers]
        has_stop_texts = [bool({*block.end_markers} & {*self._stop_texts}) for block in blocks]
        self._has_stop_text_ends = any(has_stop_texts)
        # Start markers of the blocks that have no stop text among their end markers.
        self._starts_without_stop_text = tuple(
            block.start_marker for block, has_stop_text in zip(blocks, has_stop_texts, strict=True) if not has_stop_text
        )

    def prepare_body(self, body: JsonObject, tools_json: list[JsonObject], tool_choice: RequestChoice) -> JsonObject:
        """Return the request body; see CallMethod."""
        offered_tools = [] if tool_choice == "none" else tools_json
        prompt = render_conversation(
            list(_to_prompt_messages(body["messages"])), format=self.text_format, tools=offered_tools
        )
        other_fields = {key: value for key, value in body.items() if key != "messages"}
        return {**other_fields, "prompt": prompt, "stop": list(self._stop_texts)}

    def parse_answer(self, message: Message, tools: Sequence[ToolDefinition]) -> ParsedAnswer:
        """Return the calls and the text of an answer; see CallMethod."""
        text = get_message_text(message)
        parsed_text = parse(text, format=self.text_format, tools=tools, guess_untyped=self._guess_untyped)
        calls = tuple(map(_to_openai_call, parsed_text.calls))
        parse_error_findings = tuple(
            _build_parse_error_finding(finding, text)
            for finding in parsed_text.findings
            if finding.code in UNREADABLE_CODES
        )
        stopped_end_findings = self._list_stopped_end_findings(parsed_text)
        other_findings = [finding for finding in parsed_text.findings if finding not in stopped_end_findings]
        return ParsedAnswer(
            calls,
            parsed_text.text,
            "template" if calls else "text",
            (*other_findings, *parse_error_findings),
            token_limit_findings=stopped_end_findings,
            has_unexecuted_call=bool(parse_error_findings) and not calls,
            message={**add_reasoning(message, parsed_text.reasoning), "content": parsed_text.text},
            parsed_arguments=tuple(call.arguments for call in parsed_text.calls),
        )

    def _list_stopped_end_findings(self, parsed_text: ParsedText) -> tuple[Finding, ...]:
        """Return the findings about missing end markers, if these markers are stop texts.

        Endpoints leave stop texts out of answers, so these findings count only if the answer ended at the token limit.
        """
        is_end_stop_text = self._has_stop_text_ends and not any(
            call.raw_text.startswith(self._starts_without_stop_text) for call in parsed_text.calls
        )
        return tuple(
            finding for finding in parsed_text.findings if is_end_stop_text and finding.code == "closer_missing"
        )

    def build_watcher(self, tools: Sequence[ToolDefinition]) -> Callable[[], FindCalls] | None:
        """Return a factory of call finders; see CallMethod."""
        return lambda: _build_call_finder(stream(self.text_format, tools, guess_untyped=self._guess_untyped))

    def build_assistant_message(self, message: Message, calls: Sequence[JsonObject]) -> Message:
        """Return the answer for the history; see CallMethod."""
        return {"role": "assistant", **remove_calls(message), **({"tool_calls": list(calls)} if calls else {})}


def _build_call_finder(decoder: TextDecoder) -> FindCalls:
    return lambda text: [_to_openai_call(event.call) for event in decoder.feed(text) if event.call is not None]


def _build_parse_error_finding(finding: Finding, text: str) -> Finding:
    message = finding.message.partition(";")[0]
    return Finding("parse_error", f"{message}; it was not executed: {truncate_snippet(text)}", finding.path)


def _to_openai_call(call: TextCall) -> JsonObject:
    return build_openai_call(call.id, call.name, call.arguments)


def _to_prompt_messages(messages: Iterable[Message]) -> Iterator[PromptMessage]:
    """Yield messages in OpenAI's format as messages of a prompt.

    If several calls of a message have the same id or no id, their results belong to them in order. A result without an
    earlier call becomes a user message, as does a message of an unknown role.
    """
    calls_by_id: dict[str, list[TextCall]] = {}
    for message in messages:
        text = get_message_text(message)
        match message.get("role"):
            case "assistant":
                calls = tuple(_to_text_call(call) for call in list_structured_calls(message))
                calls_by_id |= _group_by_id(calls)
                yield PromptMessage("assistant", text, _get_reasoning(message) if calls else "", calls)
            case "tool" if answered_calls := calls_by_id.get(str(message.get("tool_call_id") or "")):
                answered_call = answered_calls.pop(0) if len(answered_calls) > 1 else answered_calls[0]
                yield PromptMessage("result", text, calls=(answered_call,))
            case "system" | "developer":
                yield PromptMessage("system", text)
            case _:
                yield PromptMessage("user", text)


def _group_by_id(calls: Iterable[TextCall]) -> dict[str, list[TextCall]]:
    calls_by_id: dict[str, list[TextCall]] = {}
    for call in calls:
        calls_by_id.setdefault(call.id, []).append(call)
    return calls_by_id


def _get_reasoning(message: Message) -> str:
    """Return the text of the first reasoning field of the message that is not empty; "" without one."""
    return next((text for key in _REASONING_FIELDS if isinstance(text := message.get(key), str) and text.strip()), "")


def _to_text_call(call: JsonObject) -> TextCall:
    """Return a call for a prompt; arguments that are neither an object nor its JSON text become an empty object."""
    function = get_called_function(call)
    arguments = function.get("arguments")
    arguments_object = find_object(arguments) if isinstance(arguments, str) else get_object(arguments)
    return TextCall(str(function.get("name") or ""), arguments_object or {}, str(call.get("id") or ""))
