"""Validation of requests and answers by the Responses types of OpenAI's SDK."""

from typing import Any

from openai.types.responses import Response
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import TypeAdapter

from tests.engine.wire_formats.sdk_validation import TypeValidator, validate_request

_REQUEST_ADAPTER: TypeValidator = TypeAdapter(ResponseCreateParamsNonStreaming)
_STREAM_REQUEST_ADAPTER: TypeValidator = TypeAdapter(ResponseCreateParamsStreaming)


def parse_request(body: dict[str, Any]) -> Any:
    """Return the body as the SDK's types read it, without unknown keys.

    Raises:
        ValidationError: the body does not match the types.
    """
    return validate_request(body, _REQUEST_ADAPTER, _STREAM_REQUEST_ADAPTER)


def parse_answer(body: dict[str, Any]) -> Response:
    """Return the answer as the SDK's type.

    Raises:
        ValidationError: the body does not match the type.
    """
    return Response.model_validate(body)
