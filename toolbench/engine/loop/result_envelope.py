"""The envelope of a tool's result, and the exact text that the model gets."""

from collections.abc import Mapping
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.events import Outcome
from toolbench.engine.light_dataclass import light
from toolbench.engine.strict_json import count_utf8_bytes, read_json, write_json
from toolbench.engine.transforms import apply_result
from toolbench.engine.types import Envelope, JsonObject, TransformChange


@light(frozen=True, slots=True)
class RenderedEnvelope:
    """An envelope and its text.

    Attributes:
        envelope: the envelope before result transforms.
        content: the text sent to the model, after result transforms.
        is_replaced: whether the result was too large, so that `envelope` and `content` are an error in its place.
        changes: the changes that result transforms made.
    """

    envelope: Envelope
    content: str
    is_replaced: bool
    changes: tuple[TransformChange, ...]


def build_error_envelope(tool_name: str, code: str, message: str, data: JsonObject | None = None) -> Envelope:
    """Return the envelope of a refused or failed call, with one error."""
    return Envelope(False, tool_name, data or {}, (), ({"code": code, "message": message},))


def build_envelope(outcome: Outcome, tool_name: str) -> Envelope:
    """Return the envelope of a tool outcome, with a copy of its value that the tool cannot change later.

    A value that is not JSON becomes the error TOOL_OUTPUT_SERIALIZATION_ERROR. An object with `ok` is read as an
    envelope that the tool returned, but a tool name in it is ignored: calls are judged by the tool that ran. A value
    that is no object becomes the key `value` of `data`.
    """
    if outcome.error_code:
        return build_error_envelope(tool_name, outcome.error_code, outcome.error_message)
    try:
        value = read_json(write_json(outcome.value))
    except (TypeError, ValueError, RecursionError, InvalidJsonError) as error:
        details = {"error_class": type(error).__name__, "message": str(error)[:200]}
        return build_error_envelope(
            tool_name, "TOOL_OUTPUT_SERIALIZATION_ERROR", "The tool's result is not JSON.", details
        )
    if not isinstance(value, dict):
        return Envelope(True, tool_name, {"value": value})
    return _read_returned_envelope(value, tool_name) if "ok" in value else Envelope(True, tool_name, value)


def _read_returned_envelope(value: JsonObject, tool_name: str) -> Envelope:
    """Parse an envelope that the tool returned; any `ok` other than true is a failure."""
    data = value.get("data")
    if not isinstance(data, dict):
        data = {} if data is None else {"value": data}
    warnings = tuple(
        warning if isinstance(warning, str) else write_json(warning) for warning in _get_list(value.get("warnings"))
    )
    errors = tuple(_build_error_object(error) for error in _get_list(value.get("errors")) if isinstance(error, dict))
    return Envelope(value["ok"] is True, tool_name, data, warnings, errors)


def _get_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _build_error_object(value: Mapping[str, Any]) -> JsonObject:
    return {key: _render_text(value.get(key)) for key in ("code", "message")}


def _render_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else write_json(value)


def build_envelope_json(envelope: Envelope) -> JsonObject:
    """Return the envelope as an object with all five keys."""
    return {
        "ok": envelope.ok,
        "tool_name": envelope.tool_name,
        "data": envelope.data,
        "warnings": list(envelope.warnings),
        "errors": list(envelope.errors),
    }


def render_envelope(
    envelope: Envelope, transforms: tuple[str, ...], *, max_bytes: int, call_id: str
) -> RenderedEnvelope:
    """Apply the transforms, write the text and check its size.

    A text of more than `max_bytes` is replaced by a short error, which is transformed too and not checked again.
    """
    content, changes = _render_content(envelope, transforms, call_id)
    content_bytes = count_utf8_bytes(content)
    if content_bytes <= max_bytes:
        return RenderedEnvelope(envelope, content, False, changes)
    message = f"The result is {content_bytes} bytes; at most {max_bytes} are allowed. Ask for less."
    size_data = {"bytes": content_bytes, "max_bytes": max_bytes}
    error_envelope = build_error_envelope(envelope.tool_name, "TOOL_OUTPUT_TOO_LARGE", message, size_data)
    content, changes = _render_content(error_envelope, transforms, call_id)
    return RenderedEnvelope(error_envelope, content, True, changes)


def _render_content(
    envelope: Envelope, transforms: tuple[str, ...], call_id: str
) -> tuple[str, tuple[TransformChange, ...]]:
    payload, changes = apply_result(
        build_envelope_json(envelope), transforms, tool_name=envelope.tool_name, call_id=call_id
    )
    return write_json(payload), changes
