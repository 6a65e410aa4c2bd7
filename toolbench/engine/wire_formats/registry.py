"""How a request travels. The loop and the ways of asking work in OpenAI's chat shape; a wire turns a body in that shape
into what an endpoint takes, and reads its answers back into that shape."""

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
from toolbench.engine.wire_formats.stream_reader import StreamDecoder


class WireFormat(Protocol):
    """`path` stands below the endpoint's prefix, one that begins with a slash below its base address. `usual_findings`
    are normal where this wire is spoken and are not reported."""

    name: str
    path: str
    usual_findings: tuple[str, ...]

    def encode(self, body: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
        """A body in chat shape as it travels, and what had to be changed for it beyond its shape. `body` is not
        changed. Raises PlanError for a body that this wire cannot carry."""
        ...

    def decoder(self, read: Callable[[ChatAnswer], Turn], heard: OnDelta, *, stream: bool) -> AnswerDecoder:
        """The decoder of one answer, whole or streamed; `read` is given the answer in chat shape, `heard` every piece
        of a streamed one."""
        ...


class ChatFormat:
    """OpenAI's chat completions: bodies travel as they are, an answer that came in parts in its own."""

    name = "chat"
    path = "chat/completions"
    usual_findings: tuple[str, ...] = ()

    def encode(self, body: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
        messages = body.get("messages")
        own = [restore_content_parts(message) for message in messages] if isinstance(messages, list) else []
        return ({**body, "messages": own} if own != messages and own else body), ()

    def decoder(self, read: Callable[[ChatAnswer], Turn], heard: OnDelta, *, stream: bool) -> AnswerDecoder:
        return StreamDecoder(read, heard) if stream else BodyDecoder(read)


CHAT = ChatFormat()
_WIRES: dict[str, WireFormat] = {
    wire.name: wire for wire in (CHAT, MessagesFormat(), CompletionsFormat(), LlamaFormat())
}


def get_wire_format(name: str) -> WireFormat:
    """Raises PlanError for a name that no wire has."""
    if name not in _WIRES:
        raise PlanError(f"No wire is called {name!r}; known are {', '.join(_WIRES)}.")
    return _WIRES[name]


def choose_wire_format(policy: Policy, wire: str) -> WireFormat:
    """The wire of a run whose endpoint speaks `wire`: a rendered prompt goes to a raw completion, which only
    OpenAI-compatible endpoints have. Raises PlanError."""
    if policy.method != "template":
        return get_wire_format(wire)
    if wire != CHAT.name:
        raise PlanError(f"An endpoint that speaks {wire} takes no rendered prompt: the method template cannot be used.")
    return get_wire_format(policy.prompt_endpoint)
