"""Wire formats of simulated models: chat completions, completions, Messages and Responses."""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.chat_request import ChatRequest, parse_chat_request
from toolbench.providers.simulated.completion_prompt import parse_prompt, render_text_completion
from toolbench.providers.simulated.error_replies import Reply
from toolbench.providers.simulated.messages_request import parse_messages_request
from toolbench.providers.simulated.messages_response import (
    MESSAGE_STREAM_FAULTS,
    build_message_events,
    render_anthropic_error,
    render_message,
)
from toolbench.providers.simulated.responses_request import parse_responses_request
from toolbench.providers.simulated.responses_response import (
    RESPONSE_STREAM_FAULTS,
    build_response_events,
    render_openai_error,
    render_response,
)
from toolbench.providers.simulated.stream_events import (
    STREAM_FAULTS,
    Events,
    build_events,
    encode_chat_events,
    encode_typed_events,
)


class BuildStreamEvents(Protocol):
    """Type of the functions that split a completion into the events of a stream."""

    def __call__(self, completion: JsonObject, generator: random.Random, *, with_usage: bool) -> Any:
        """Build the events of the stream.

        Args:
            completion: the completion.
            generator: random generator for the lengths of the parts of a text.
            with_usage: whether the request asks for the usage.
        """
        ...


@dataclass(frozen=True, slots=True)
class SimulatedWireFormat:
    """Functions that parse requests and render responses of one wire format.

    Attributes:
        parse_request: parses a body; raises ValueError, KeyError, TypeError or AttributeError for an invalid one.
        render_response: converts a chat completion.
        render_error: converts an error in OpenAI's format.
        stream_events: splits a chat completion into the events of a stream.
        encode_events: encodes the events, one chunk per event.
        stream_faults: faults of its streams by name; they change the events in place.
        name_prefix: prefix that a model's name may have in a request; "" for none.
    """

    parse_request: Callable[[JsonObject], ChatRequest]
    render_response: Callable[[JsonObject], JsonObject | str]
    render_error: Callable[[Reply], Reply]
    stream_events: BuildStreamEvents
    encode_events: Callable[[Any], tuple[bytes, ...]]
    stream_faults: Mapping[str, Callable[[Any], None]]
    name_prefix: str = ""

    def render_body(self, completion: JsonObject) -> bytes:
        """Return the completion as the JSON body of a response."""
        return json.dumps(self.render_response(completion)).encode("ascii")


def _return_unchanged(value: Any) -> Any:
    return value


def _parse_prompt_request(body: JsonObject) -> ChatRequest:
    return parse_chat_request(*parse_prompt(body))


def _parse_messages(body: JsonObject) -> ChatRequest:
    return parse_chat_request(parse_messages_request(body))


def _parse_responses(body: JsonObject) -> ChatRequest:
    return parse_chat_request(parse_responses_request(body))


def _encode_text_events(events: Events) -> tuple[bytes, ...]:
    return encode_chat_events([render_text_completion(event) for event in events])


CHAT = SimulatedWireFormat(
    parse_chat_request, _return_unchanged, _return_unchanged, build_events, encode_chat_events, STREAM_FAULTS
)
COMPLETIONS = SimulatedWireFormat(
    _parse_prompt_request, render_text_completion, _return_unchanged, build_events, _encode_text_events, STREAM_FAULTS
)
MESSAGES = SimulatedWireFormat(
    _parse_messages,
    render_message,
    render_anthropic_error,
    build_message_events,
    encode_typed_events,
    MESSAGE_STREAM_FAULTS,
    name_prefix="messages/",
)
RESPONSES = SimulatedWireFormat(
    _parse_responses,
    render_response,
    render_openai_error,
    build_response_events,
    encode_typed_events,
    RESPONSE_STREAM_FAULTS,
    name_prefix="responses/",
)
