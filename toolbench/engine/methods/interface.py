"""The interface of each method of requesting calls: building requests, parsing answers, rendering the history."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from toolbench.engine.methods.instructions import build_result_message
from toolbench.engine.methods.parsed_answer import ParsedAnswer
from toolbench.engine.methods.streaming_calls import FindCalls
from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import JsonObject, Message, ToolCall, TransformChange, remove_calls


class CallMethod(ABC):
    """A method of requesting calls.

    Attributes:
        method: name of the method in the policy.
        prompt_version: name and version of the instruction or prompt template that is sent; "" for none.
    """

    method: str
    prompt_version: str

    @abstractmethod
    def prepare_body(self, body: JsonObject, tools_json: list[JsonObject], tool_choice: RequestChoice) -> JsonObject:
        """Return a new request body that requests calls of these tools.

        Without tools, the new body is equal to `body`, except in the method `template`, which always replaces the
        messages by a prompt.

        Args:
            body: the body so far, with `messages`.
            tools_json: the offered tools in OpenAI's format, after tool transforms; empty for a request without tools.
            tool_choice: the tool choice in the form of a chat request.
        """

    @abstractmethod
    def parse_answer(self, message: Message, tools: Sequence[ToolDefinition]) -> ParsedAnswer:
        """Return the calls and the text of an answer; `tools` is empty if the request had no tools."""

    @abstractmethod
    def build_watcher(self, tools: Sequence[ToolDefinition]) -> Callable[[], FindCalls] | None:
        """Return a factory of call finders; each attempt of a streamed answer needs a new call finder.

        Returns:
            The factory; None if calls have their own field in the answer, whose parts the decoder emits anyway.
        """

    @abstractmethod
    def build_assistant_message(self, message: Message, calls: Sequence[JsonObject]) -> Message:
        """Return the answer for the history; `calls` are the calls that the loop keeps."""

    def build_result_messages(self, call: ToolCall, content: str) -> list[Message]:
        """Return the messages that give a call's result to the model; by default, one in OpenAI's format."""
        return [{"role": "tool", "tool_call_id": call.id, "content": content}]

    def render_history(self, messages: Sequence[Message]) -> list[Message]:
        """Return the history, given in OpenAI's format, in the form of this method; by default unchanged."""
        return list(messages)

    def list_dropped_keywords(
        self, tools_json: list[JsonObject], tool_choice: RequestChoice
    ) -> tuple[TransformChange, ...]:
        """Return one change for each schema keyword that the constraint does not enforce; by default there is none.

        Raises:
            PlanError: a schema cannot be used.
        """
        return ()


class TextCallMethod(CallMethod):
    """A method whose calls are in the text of an answer, and whose results are sent as user messages."""

    def build_assistant_message(self, message: Message, calls: Sequence[JsonObject]) -> Message:
        """Return the answer for the history; see CallMethod."""
        return {"role": "assistant", **remove_calls(message)}

    def build_result_messages(self, call: ToolCall, content: str) -> list[Message]:
        """Return the messages with a call's result; see CallMethod."""
        return [build_result_message(call, content)]
