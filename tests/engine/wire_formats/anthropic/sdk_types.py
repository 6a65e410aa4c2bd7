"""Validation of requests and answers by the types of Anthropic's SDK.

The SDK has API version 2026-10-21, without sampling parameters; Toolbench sends 2023-06-01, which has them.
"""

from typing import Any

from anthropic.types import Message
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from pydantic import TypeAdapter

from tests.engine.wire_formats.sdk_validation import TypeValidator, validate_request
from toolbench.engine.wire_formats.anthropic.requests import SAMPLING_KEYS

_REQUEST_ADAPTER: TypeValidator = TypeAdapter(MessageCreateParamsNonStreaming)
_STREAM_REQUEST_ADAPTER: TypeValidator = TypeAdapter(MessageCreateParamsStreaming)


def parse_request(body: dict[str, Any]) -> Any:
    """Return the body as the SDK's types read it, without unknown keys but with those of sampling.

    Raises:
        ValidationError: the body does not match the types.
    """
    sampling = {name: body[name] for name in SAMPLING_KEYS if name in body}
    return validate_request(body, _REQUEST_ADAPTER, _STREAM_REQUEST_ADAPTER) | sampling


def parse_answer(body: dict[str, Any]) -> Message:
    """Return the answer as the SDK's type.

    Raises:
        ValidationError: the body does not match the type.
    """
    return Message.model_validate(body)
