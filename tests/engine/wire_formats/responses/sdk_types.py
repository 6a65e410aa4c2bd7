"""Validation of requests and answers by the Responses types of OpenAI's SDK."""

from typing import Any, Protocol

from openai.types.responses import Response
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import TypeAdapter


class _TypeValidator(Protocol):
    def validate_python(self, value: Any, /) -> Any: ...


_REQUEST_ADAPTER: _TypeValidator = TypeAdapter(ResponseCreateParamsNonStreaming)
_STREAM_REQUEST_ADAPTER: _TypeValidator = TypeAdapter(ResponseCreateParamsStreaming)


def parse_request(body: dict[str, Any]) -> Any:
    """Return the body as the SDK's types read it, without unknown keys.

    Raises:
        ValidationError: the body does not match the types.
    """
    return _to_plain((_STREAM_REQUEST_ADAPTER if body.get("stream") else _REQUEST_ADAPTER).validate_python(body))


def parse_answer(body: dict[str, Any]) -> Response:
    """Return the answer as the SDK's type.

    Raises:
        ValidationError: the body does not match the type.
    """
    return Response.model_validate(body)


def _to_plain(value: Any) -> Any:
    """Return the value without lazy iterables, which pydantic checks only while they are iterated."""
    if isinstance(value, dict):
        return {name: _to_plain(child) for name, child in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return [_to_plain(child) for child in value]
