"""Anthropic's own types, as its SDK has them, held against what we send and what we are sent.

The SDK speaks API version 2026-10-21, which has no sampling parameters any more; we speak 2023-06-01, which has."""

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
    """The body as the SDK's types read it: what they do not know is gone, but for sampling. Raises ValidationError."""
    sampling = {name: body[name] for name in SAMPLING_KEYS if name in body}
    return (
        _to_plain((_STREAM_REQUEST_ADAPTER if body.get("stream") else _REQUEST_ADAPTER).validate_python(body))
        | sampling
    )


def parse_answer(body: dict[str, Any]) -> Message:
    """Raises ValidationError."""
    return Message.model_validate(body)


def _to_plain(value: Any) -> Any:
    """Iterables are only checked while they are walked."""
    if isinstance(value, dict):
        return {name: _to_plain(child) for name, child in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return [_to_plain(child) for child in value]
