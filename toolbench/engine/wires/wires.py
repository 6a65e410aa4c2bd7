"""How a request travels. The loop and the ways of asking work in OpenAI's chat shape; a wire turns a body in that shape
into what an endpoint takes, and reads its answers back into that shape."""

from collections.abc import Callable
from typing import Protocol

from toolbench.engine.errors import PlanError
from toolbench.engine.events import Decoder, Hear
from toolbench.engine.messages import JsonObject, TransformChange, Turn
from toolbench.engine.policy.policy import Policy
from toolbench.engine.wires.answers import Answer, BodyDecoder
from toolbench.engine.wires.anthropic.messages_wire import MessagesWire
from toolbench.engine.wires.completions import CompletionsWire, LlamaWire
from toolbench.engine.wires.parts import own_parts
from toolbench.engine.wires.streaming import StreamDecoder


class Wire(Protocol):
    """`path` stands below the endpoint's prefix, one that begins with a slash below its base address. `usual_findings`
    are normal where this wire is spoken and are not reported."""

    name: str
    path: str
    usual_findings: tuple[str, ...]

    def encode(self, body: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
        """A body in chat shape as it travels, and what had to be changed for it beyond its shape. `body` is not
        changed. Raises PlanError for a body that this wire cannot carry."""
        ...

    def decoder(self, read: Callable[[Answer], Turn], heard: Hear, *, stream: bool) -> Decoder:
        """The decoder of one answer, whole or streamed; `read` is given the answer in chat shape, `heard` every piece
        of a streamed one."""
        ...


class ChatWire:
    """OpenAI's chat completions: bodies travel as they are, an answer that came in parts in its own."""

    name = "chat"
    path = "chat/completions"
    usual_findings: tuple[str, ...] = ()

    def encode(self, body: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
        messages = body.get("messages")
        own = [own_parts(message) for message in messages] if isinstance(messages, list) else []
        return ({**body, "messages": own} if own != messages and own else body), ()

    def decoder(self, read: Callable[[Answer], Turn], heard: Hear, *, stream: bool) -> Decoder:
        return StreamDecoder(read, heard) if stream else BodyDecoder(read)


CHAT = ChatWire()
_WIRES: dict[str, Wire] = {wire.name: wire for wire in (CHAT, MessagesWire(), CompletionsWire(), LlamaWire())}


def wire_named(name: str) -> Wire:
    """Raises PlanError for a name that no wire has."""
    if name not in _WIRES:
        raise PlanError(f"No wire is called {name!r}; known are {', '.join(_WIRES)}.")
    return _WIRES[name]


def wire_for(policy: Policy, wire: str) -> Wire:
    """The wire of a run whose endpoint speaks `wire`: a rendered prompt goes to a raw completion, which only
    OpenAI-compatible endpoints have. Raises PlanError."""
    if policy.method != "template":
        return wire_named(wire)
    if wire != CHAT.name:
        raise PlanError(f"An endpoint that speaks {wire} takes no rendered prompt: the method template cannot be used.")
    return wire_named(policy.prompt_endpoint)
