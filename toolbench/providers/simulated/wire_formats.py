"""The three shapes in which a persona can say the same thing."""

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
    encode_message_events,
    render_anthropic_error,
    render_message,
)
from toolbench.providers.simulated.stream_events import STREAM_FAULTS, Events, build_events, encode_chat_events


class BuildStreamEvents(Protocol):
    """Cuts a completion into the events of a stream."""

    def __call__(self, completion: JsonObject, draw: random.Random, *, with_usage: bool) -> Any: ...


@dataclass(frozen=True, slots=True)
class SimulatedWireFormat:
    """`parse_request` reads a body, or raises an error whose text says why it cannot be; `render_response` puts a
    completion into its shape, `render_error` a refusal; `stream_events` and `encode_events` make a stream, which
    `stream_faults` may befall. `name_prefix` may stand before a persona's name: it tells the two shapes apart where
    both are listed."""

    parse_request: Callable[[JsonObject], ChatRequest]
    render_response: Callable[[JsonObject], JsonObject | str]
    render_error: Callable[[Reply], Reply]
    stream_events: BuildStreamEvents
    encode_events: Callable[[Any], tuple[bytes, ...]]
    stream_faults: Mapping[str, Callable[[Any], None]]
    name_prefix: str = ""

    def render_body(self, completion: JsonObject) -> bytes:
        return json.dumps(self.render_response(completion)).encode("ascii")


def _return_unchanged(value: Any) -> Any:
    return value


def _parse_prompt_request(body: JsonObject) -> ChatRequest:
    return parse_chat_request(*parse_prompt(body))


def _parse_messages(body: JsonObject) -> ChatRequest:
    return parse_chat_request(parse_messages_request(body))


def _encode_text_events(events: Events) -> tuple[bytes, ...]:
    return encode_chat_events([render_text_completion(event) for event in events])


CHAT = SimulatedWireFormat(
    parse_chat_request, _return_unchanged, _return_unchanged, build_events, encode_chat_events, STREAM_FAULTS
)
PROMPT = SimulatedWireFormat(
    _parse_prompt_request, render_text_completion, _return_unchanged, build_events, _encode_text_events, STREAM_FAULTS
)
MESSAGES = SimulatedWireFormat(
    _parse_messages,
    render_message,
    render_anthropic_error,
    build_message_events,
    encode_message_events,
    MESSAGE_STREAM_FAULTS,
    name_prefix="messages/",
)
