"""The wire format of OpenAI's Responses API and of endpoints compatible with it."""

from collections.abc import Callable

from toolbench.engine.events import AnswerDecoder, OnDelta
from toolbench.engine.types import JsonObject, TransformChange, Turn
from toolbench.engine.wire_formats.chat_answer import BodyDecoder, ChatAnswer
from toolbench.engine.wire_formats.responses.answers import decode_response
from toolbench.engine.wire_formats.responses.requests import encode_request
from toolbench.engine.wire_formats.responses.stream_assembly import ResponsesAssembler
from toolbench.engine.wire_formats.stream_reader import StreamDecoder


class ResponsesFormat:
    """Wire format of OpenAI's Responses API."""

    name = "responses"
    path = "responses"
    usual_findings: tuple[str, ...] = ("content_beside_calls",)  # models announce their calls in a message item

    def encode(self, body: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
        """Return the body to send; see WireFormat."""
        return encode_request(body)

    def build_decoder(
        self, read_answer: Callable[[ChatAnswer], Turn], on_delta: OnDelta, *, is_streamed: bool
    ) -> AnswerDecoder:
        """Return the decoder of one answer; see WireFormat."""
        if not is_streamed:
            return BodyDecoder(read_answer, decode_response)
        return StreamDecoder(read_answer, on_delta, build_assembler=ResponsesAssembler, decode_body=decode_response)
