"""The three shapes in which a persona can say the same thing."""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from toolbench.engine.messages import JsonObject
from toolbench.providers.simulated.chat_request import Conversation, read_conversation
from toolbench.providers.simulated.completion_prompt import chat_request, told_as_text
from toolbench.providers.simulated.error_replies import Reply
from toolbench.providers.simulated.messages_request import read_messages
from toolbench.providers.simulated.messages_response import (
    MESSAGE_STREAM_DRIFTS,
    encode_events,
    in_anthropics_words,
    message_events,
    message_of,
)
from toolbench.providers.simulated.stream_events import STREAM_DRIFTS, Events, encode, events_of


class Cuts(Protocol):
    """Cuts a completion into the events of a stream."""

    def __call__(self, completion: JsonObject, draw: random.Random, *, with_usage: bool) -> Any: ...


@dataclass(frozen=True, slots=True)
class Voice:
    """`hears` reads a body, or raises an error whose text says why it cannot be; `says` puts a completion into
    its shape, `refuses` a refusal; `cuts` and `encodes` make a stream, which `drifts` may befall. `prefix` may stand
    before a persona's name: it tells the two shapes apart where both are listed."""

    hears: Callable[[JsonObject], Conversation]
    says: Callable[[JsonObject], JsonObject | str]
    refuses: Callable[[Reply], Reply]
    cuts: Cuts
    encodes: Callable[[Any], tuple[bytes, ...]]
    drifts: Mapping[str, Callable[[Any], None]]
    prefix: str = ""

    def whole(self, completion: JsonObject) -> bytes:
        return json.dumps(self.says(completion)).encode("ascii")


def _as_it_is(value: Any) -> Any:
    return value


def _in_a_prompt(body: JsonObject) -> Conversation:
    return read_conversation(*chat_request(body))


def _in_messages(body: JsonObject) -> Conversation:
    return read_conversation(read_messages(body))


def _encode_texts(events: Events) -> tuple[bytes, ...]:
    return encode([told_as_text(event) for event in events])


CHAT = Voice(read_conversation, _as_it_is, _as_it_is, events_of, encode, STREAM_DRIFTS)
PROMPT = Voice(_in_a_prompt, told_as_text, _as_it_is, events_of, _encode_texts, STREAM_DRIFTS)
MESSAGES = Voice(
    _in_messages,
    message_of,
    in_anthropics_words,
    message_events,
    encode_events,
    MESSAGE_STREAM_DRIFTS,
    prefix="messages/",
)
