"""Step details, stored as JSON in `StepBody.facts`, and conversion of values that database columns would refuse.

`StepBody.facts` of an exchange has these keys:

- always: tools_sent, stream, request_headers, request_changes, response_headers, error (null for none), chunks
  ([offset ms, bytes] each), partial (the message so far, if a stream broke off, else {});
- if they are not empty: left_out (names of parameters that the request leaves out), said (a further message of the
  user, only in the first attempt of the first request that has it);
- with an answer: response_changes, text, message, calls_found, calls, ignored_calls (a count), findings, mode (how
  calls were requested), parse_errors ({mode, error, snippet, call, repairs, truncated} each), notice ("Tool not
  executed: …"), usage.

`StepBody.facts` of a tool execution has: call, arguments, parse_status, executed, envelope, schema_errors,
output_replaced, changes. A call is {id, name, arguments}; a change {kind, name, path, before, after}; a finding {code,
message, path}.

`StepBody.request` of a tool execution holds the result of `encode_arguments`; `.response` holds the exact text of the
tool's result. Once the bodies of a trial were removed, `.facts` is {}.
"""

import json
import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from toolbench.engine.events import ExchangeError
from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject, ToolCall
from toolbench.providers.driver.step_records import ExchangeStep, ToolStep

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Stored = TypeVar("Stored", bound="DataclassInstance")
MAX_COLUMN_CHARS = 100_000
_ENCODER = json.JSONEncoder(default=str)
_STRICT_ENCODER = json.JSONEncoder(allow_nan=False)


def build_exchange_details(step: ExchangeStep) -> bytes:
    """Return the details of an exchange as JSON bytes."""
    facts: JsonObject = {
        "tools_sent": step.request.has_tools,
        "stream": step.request.is_streamed,
        "request_headers": step.request_headers,
        "request_changes": [_to_dict(change) for change in step.request.changes],
        "response_headers": step.response_headers,
        "error": _to_dict(step.error) if step.error else None,
        "chunks": step.chunks,
        "partial": step.partial,
    }
    if step.request.omitted_parameters:
        facts["left_out"] = [parameter.name for parameter in step.request.omitted_parameters]
    if step.request.user_message and step.attempt == 1:
        facts["said"] = step.request.user_message
    turn = step.turn_read
    if turn is not None:
        facts |= {
            "response_changes": [_to_dict(change) for change in turn.changes],
            "text": turn.text,
            "message": turn.message,
            "calls_found": [_call_to_json(call) for call in turn.calls_found],
            "calls": [_call_to_json(call) for call in turn.calls],
            "ignored_calls": turn.ignored_call_count,
            "findings": [_to_dict(finding) for finding in turn.findings],
            "mode": turn.mode,
            "parse_errors": [_to_dict(error) for error in turn.parse_errors],
            "notice": turn.notice,
            "usage": _to_dict(turn.usage) if turn.usage else None,
        }
    return dump_details(facts)


def build_tool_details(step: ToolStep) -> bytes:
    """Return the details of a tool execution as JSON bytes."""
    result = step.result
    return dump_details(
        {
            "call": _call_to_json(result.call),
            "arguments": result.arguments,
            "parse_status": result.parse_status,
            "executed": result.was_executed,
            "envelope": _to_dict(result.envelope),
            "schema_errors": [_to_dict(error) for error in result.schema_errors],
            "output_replaced": result.is_output_replaced,
            "changes": [_to_dict(change) for change in result.changes],
        }
    )


def encode_arguments(call: ToolCall) -> bytes:
    """Return the arguments of a call: a text as the model wrote it, other values as JSON; b"" for None."""
    if isinstance(call.arguments, str):
        return call.arguments.encode("utf-8", "surrogatepass")
    return b"" if call.arguments is None else dump_details(call.arguments)


def estimate_body_bytes(step: ExchangeStep | ToolStep) -> int:
    """Return the number of bytes in the bodies of an exchange.

    For a tool execution, the number of characters in its result is returned, which has about as many bytes.
    """
    return (
        len(step.request_body) + len(step.response_body) if isinstance(step, ExchangeStep) else len(step.result.content)
    )


def dump_details(value: Any) -> bytes:
    """Return `value` as JSON in ASCII bytes; values that are not JSON are written as their `str`.

    NUL and lone surrogates are escaped, NaN is written as NaN. A value that is nested too deeply for JSON becomes
    {"unreadable": reason}.
    """
    try:
        return _ENCODER.encode(value).encode("ascii")
    except (ValueError, RecursionError) as error:
        return json.dumps({"unreadable": type(error).__name__}).encode("ascii")


def load_details(facts: bytes | memoryview) -> JsonObject:
    """Parse stored step details.

    Returns:
        The details; an empty dict if nothing is stored or the bytes are no JSON object.
    """
    try:
        return get_object(json.loads(bytes(facts) or b"{}"))
    except (ValueError, RecursionError):
        return {}


def build_stored(kind: type[Stored], members: JsonObject) -> Stored:
    """Build a dataclass from its stored members; unknown members are ignored, lists become tuples.

    Raises:
        TypeError: a field without a default is missing.
    """
    names = {field.name for field in fields(kind)}
    known = {name: value for name, value in members.items() if name in names}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in known.items()})


def load_exchange_error(details: JsonObject) -> ExchangeError | None:
    """Return the error in the details of an exchange, without unknown keys; None if the details have no error.

    Raises:
        TypeError: the stored error has no code or no message.
    """
    error = get_object(details.get("error"))
    return build_stored(ExchangeError, error) if error else None


def to_column_text(value: object, limit: int = MAX_COLUMN_CHARS) -> str:
    """Return `str(value)`, truncated to `limit` characters, with NUL and lone surrogates replaced; "" for None."""
    text = "" if value is None else str(value)[:limit]
    if "\x00" in text or not text.isascii():
        text = text.replace("\x00", "\N{SYMBOL FOR NULL}").encode("utf-8", "replace").decode("utf-8")
    return text


def to_column_json(value: Any) -> Any:
    """Return the value as JSON that `jsonb` accepts.

    NaN and infinity become None, NUL and lone surrogates in texts are replaced, and a text of more than
    MAX_COLUMN_CHARS characters is truncated.
    """
    return value if _is_column_json(value) else _convert_to_column_json(value)


def _is_column_json(value: Any) -> bool:
    """Return whether `jsonb` surely accepts the value unchanged. Encoding the value is the fastest check."""
    try:
        text = _STRICT_ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return len(text) <= MAX_COLUMN_CHARS and "\\u0000" not in text and "\\ud" not in text


def _convert_to_column_json(value: Any) -> Any:
    if isinstance(value, str):
        return to_column_text(value)
    if isinstance(value, dict):
        return {to_column_text(key): _convert_to_column_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_convert_to_column_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _call_to_json(call: ToolCall) -> JsonObject:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def _to_dict(value: Any) -> JsonObject:
    """Return the fields of a slotted dataclass; values are not copied, which is faster than `asdict`."""
    return {name: getattr(value, name) for name in value.__slots__}
