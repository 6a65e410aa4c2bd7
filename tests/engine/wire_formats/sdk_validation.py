"""Validation of requests by the types of a provider's SDK."""

from typing import Any, Protocol


class TypeValidator(Protocol):
    """A TypeAdapter of pydantic."""

    def validate_python(self, value: Any, /) -> Any: ...


def validate_request(body: dict[str, Any], adapter: TypeValidator, stream_adapter: TypeValidator) -> Any:
    """Return the body as the SDK's types read it, without unknown keys.

    Raises:
        ValidationError: the body does not match the types.
    """
    return _to_plain((stream_adapter if body.get("stream") else adapter).validate_python(body))


def _to_plain(value: Any) -> Any:
    """Return the value without lazy iterables, which pydantic checks only while they are iterated."""
    if isinstance(value, dict):
        return {name: _to_plain(child) for name, child in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return [_to_plain(child) for child in value]
