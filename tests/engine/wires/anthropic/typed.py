"""Anthropic's own types, as its SDK has them, held against what we send and what we are sent.

The SDK speaks API version 2026-10-21, which has no sampling parameters any more; we speak 2023-06-01, which has."""

from typing import Any, Protocol

from anthropic.types import Message
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from pydantic import TypeAdapter

from toolbench.engine.wires.anthropic.requests import SAMPLING


class _Reads(Protocol):
    def validate_python(self, value: Any, /) -> Any: ...


_REQUEST: _Reads = TypeAdapter(MessageCreateParamsNonStreaming)
_STREAMED: _Reads = TypeAdapter(MessageCreateParamsStreaming)


def typed(body: dict[str, Any]) -> Any:
    """The body as the SDK's types read it: what they do not know is gone, but for sampling. Raises ValidationError."""
    sampling = {name: body[name] for name in SAMPLING if name in body}
    return _plain((_STREAMED if body.get("stream") else _REQUEST).validate_python(body)) | sampling


def typed_answer(body: dict[str, Any]) -> Message:
    """Raises ValidationError."""
    return Message.model_validate(body)


def _plain(value: Any) -> Any:
    """Iterables are only checked while they are walked."""
    if isinstance(value, dict):
        return {name: _plain(child) for name, child in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return [_plain(child) for child in value]
