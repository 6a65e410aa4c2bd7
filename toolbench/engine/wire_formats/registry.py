"""The wire formats. The loop and the methods work in OpenAI's chat format.

A wire format converts a request body in chat format to the format of an endpoint, and the endpoint's answers to chat
format.
"""

from collections.abc import Callable
from typing import Protocol

from toolbench.engine.errors import PlanError
from toolbench.engine.events import AnswerDecoder, OnDelta
from toolbench.engine.policy.settings import Policy
from toolbench.engine.types import JsonObject, TransformChange, Turn
from toolbench.engine.wire_formats.anthropic.messages_format import MessagesFormat
from toolbench.engine.wire_formats.chat_answer import BodyDecoder, ChatAnswer
from toolbench.engine.wire_formats.completions import CompletionsFormat, LlamaFormat
from toolbench.engine.wire_formats.content_parts import restore_content_parts
from toolbench.engine.wire_formats.responses.responses_format import ResponsesFormat
from toolbench.engine.wire_formats.stream_reader import StreamDecoder


class WireFormat(Protocol):
    """A wire format.

    Attributes:
        path: path below the endpoint's prefix; a path that begins with a slash is below the endpoint's base URL.
        usual_findings: codes of findings that are usual in this format and therefore not reported.
    """

    name: str
    path: str
    usual_findings: tuple[str, ...]

    def encode(self, body: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
        """Return the body to send, and the changes beyond the conversion.

        Args:
            body: a body in chat format, which has a rendered `prompt` for completion formats; not modified.

        Raises:
            PlanError: the body cannot be sent in this format.
        """
        ...

    def build_decoder(
        self, read_answer: Callable[[ChatAnswer], Turn], on_delta: OnDelta, *, is_streamed: bool
    ) -> AnswerDecoder:
        """Return the decoder of one answer.

        Args:
            read_answer: parses the text and calls of the complete answer.
            on_delta: called with each part of a streamed answer.
            is_streamed: whether the answer is streamed.
        """
        ...


class ChatFormat:
    """Wire format of OpenAI's chat completions.

    Bodies are sent unchanged, except that messages received as content parts are sent as parts again.
    """

    name = "chat"
    path = "chat/completions"
    usual_findings: tuple[str, ...] = ()

    def encode(self, body: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
        """Return the body to send; see WireFormat."""
        messages = body.get("messages")
        restored_messages = (
            [restore_content_parts(message) for message in messages] if isinstance(messages, list) else []
        )
        return (
            {**body, "messages": restored_messages} if restored_messages != messages and restored_messages else body
        ), ()

    def build_decoder(
        self, read_answer: Callable[[ChatAnswer], Turn], on_delta: OnDelta, *, is_streamed: bool
    ) -> AnswerDecoder:
        """Return the decoder of one answer; see WireFormat."""
        return StreamDecoder(read_answer, on_delta) if is_streamed else BodyDecoder(read_answer)


CHAT = ChatFormat()
_FORMAT_BY_NAME: dict[str, WireFormat] = {
    wire_format.name: wire_format
    for wire_format in (CHAT, MessagesFormat(), ResponsesFormat(), CompletionsFormat(), LlamaFormat())
}


def get_wire_format(name: str) -> WireFormat:
    """Return the wire format of this name.

    Raises:
        PlanError: there is no such wire format.
    """
    if name not in _FORMAT_BY_NAME:
        raise PlanError(f"There is no wire format {name!r}; known are {', '.join(_FORMAT_BY_NAME)}.")
    return _FORMAT_BY_NAME[name]


def choose_wire_format(policy: Policy, wire: str) -> WireFormat:
    """Return the wire format of a run whose endpoint uses `wire`.

    The method template sends a rendered prompt, in a completion format that only OpenAI-compatible endpoints accept.

    Args:
        policy: the settings of the run.
        wire: name of the wire format of the endpoint.

    Raises:
        PlanError: the endpoint cannot be used with the policy's method, or there is no wire format of this name.
    """
    if policy.method != "template":
        return get_wire_format(wire)
    if wire != CHAT.name:
        raise PlanError(
            f"An endpoint with the wire format {wire} takes no rendered prompt, so the method template cannot be used."
        )
    return get_wire_format(policy.prompt_endpoint)
