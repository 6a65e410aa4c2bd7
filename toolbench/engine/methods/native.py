"""The method `native`, which sends tools in the field `tools` of the request; most endpoints accept this field."""

from collections.abc import Callable, Sequence

from toolbench.engine.methods.instructions import append_to_system, build_instruction, get_prompt_version
from toolbench.engine.methods.interface import CallMethod
from toolbench.engine.methods.json_in_text import find_attempted_call
from toolbench.engine.methods.parsed_answer import ParsedAnswer, build_unexecuted_answer
from toolbench.engine.methods.streaming_calls import FindCalls
from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import JsonObject, Message, remove_calls
from toolbench.engine.wire_formats.parse_answer import get_message_text, list_structured_calls


class NativeMethod(CallMethod):
    """Method that sends tools and receives calls in the fields of the wire format.

    A call that the model writes into its text does not run; it is reported if the answer has no `tool_calls`. With
    `sends_instruction`, the system message tells the model to fill in parameters and to write no JSON into its text.
    """

    method = "native"

    def __init__(self, *, sends_instruction: bool = False) -> None:
        self.prompt_version = get_prompt_version(self.method) if sends_instruction else ""

    def prepare_body(self, body: JsonObject, tools_json: list[JsonObject], tool_choice: RequestChoice) -> JsonObject:
        """Return the request body; see CallMethod."""
        if not tools_json:
            return dict(body)
        messages = (
            append_to_system(body["messages"], build_instruction(self.method, tools_json))
            if self.prompt_version
            else None
        )
        return {**body, **({"messages": messages} if messages else {}), "tools": tools_json, "tool_choice": tool_choice}

    def parse_answer(self, message: Message, tools: Sequence[ToolDefinition]) -> ParsedAnswer:
        """Return the calls and the text of an answer; see CallMethod."""
        calls, text = list_structured_calls(message), get_message_text(message)
        if calls:
            return ParsedAnswer(calls, text, "tool_use")
        name_or_code = find_attempted_call(text, [tool.name for tool in tools])
        if name_or_code is None:
            return ParsedAnswer((), text, "text")
        description = (
            f"The answer spells a call in its text ({name_or_code}) and has no tool_calls; it was not executed."
        )
        return build_unexecuted_answer(text, "call_in_text", description)

    def build_watcher(self, tools: Sequence[ToolDefinition]) -> Callable[[], FindCalls] | None:
        """Return None: calls have their own field; see CallMethod."""
        return None

    def build_assistant_message(self, message: Message, calls: Sequence[JsonObject]) -> Message:
        """Return the answer for the history; see CallMethod."""
        history_message = remove_calls(message)
        history_message.setdefault("role", "assistant")
        return {**history_message, "tool_calls": list(calls)} if calls else history_message
