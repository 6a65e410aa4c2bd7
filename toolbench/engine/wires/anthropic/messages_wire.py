"""The wire to Anthropic's Messages API and to whatever else speaks it."""

from collections.abc import Callable

from toolbench.engine.events import Decoder, Hear
from toolbench.engine.messages import JsonObject, TransformChange, Turn
from toolbench.engine.wires.answers import Answer, BodyDecoder
from toolbench.engine.wires.anthropic.answers import decode_message
from toolbench.engine.wires.anthropic.assembly import Assembly
from toolbench.engine.wires.anthropic.requests import encode_request
from toolbench.engine.wires.streaming import StreamDecoder


class MessagesWire:
    """Bodies travel in Anthropic's shape and answers come back from it."""

    name = "anthropic"
    path = "messages"
    usual_findings: tuple[str, ...] = ("content_beside_calls",)  # the model says what it is about to do

    def encode(self, body: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
        return encode_request(body)

    def decoder(self, read: Callable[[Answer], Turn], heard: Hear, *, stream: bool) -> Decoder:
        if not stream:
            return BodyDecoder(read, decode_message)
        return StreamDecoder(read, heard, assemble=Assembly, whole=decode_message)
