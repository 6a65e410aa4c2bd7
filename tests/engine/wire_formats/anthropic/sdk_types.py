"""Validation of requests and answers by the types of Anthropic's SDK.

The SDK has API version 2026-10-21, without sampling parameters; Toolbench sends 2023-06-01, which has them.
"""

from typing import Any, Protocol

from anthropic.types import Message
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from pydantic import TypeAdapter

from toolbench.engine.wire_formats.anthropic.requests import SAMPLING_KEYS


class _TypeValidator(Protocol):
    def validate_python(self, value: Any, /) -> Any: ...


_REQUEST_ADAPTER: _TypeValidator = TypeAdapter(MessageCreateParamsNonStreaming)
_STREAM_REQUEST_ADAPTER: _TypeValidator = TypeAdapter(MessageCreateParamsStreaming)


def parse_request(body: dict[str, Any]) -> Any:
    """Return the body as the SDK's types read it, without unknown keys but with those of sampling.

    Raises:
        ValidationError: the body does not match the types.
    """
    sampling = {name: body[name] for name in SAMPLING_KEYS if name in body}
    return (
        _to_plain((_STREAM_REQUEST_ADAPTER if body.get("stream") else _REQUEST_ADAPTER).validate_python(body))
        | sampling
    )


def parse_answer(body: dict[str, Any]) -> Message:
    """Return the answer as the SDK's type.

    Raises:
        ValidationError: the body does not match the type.
    """
    return Message.model_validate(body)


def _to_plain(value: Any) -> Any:
    """Return the value without lazy iterables, which pydantic checks only while they are iterated."""
    if isinstance(value, dict):
        return {name: _to_plain(child) for name, child in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return [_to_plain(child) for child in value]
