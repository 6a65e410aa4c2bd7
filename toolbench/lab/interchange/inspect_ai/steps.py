"""Conversion of the events of a sample in an Inspect AI log to steps."""

import json
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.usage import UsageReader
from toolbench.lab.interchange.create_run import ColumnValues, NewStep
from toolbench.lab.interchange.plausible_figures import FigureReader
from toolbench.lab.interchange.row_json import InvalidRowError
from toolbench.lab.traces.step_facts import dump_details, to_column_text

_ATTACHMENT_PREFIX = "attachment://"
_MAX_DEPTH = 100  # of lists and objects in which attachments are resolved
_MESSAGES_KEY = "messages"
_INPUT_TOKEN_FIELDS = ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write")
MAX_RESOLVED_CHARS = 256 << 20  # in the bodies of one sample, with CHARS_PER_VALUE for each JSON value
CHARS_PER_VALUE = 80  # about the bytes of memory that a value takes beside its text
MAX_MESSAGES = 100_000  # of one request


def build_steps(sample: JsonObject, figure_reader: FigureReader) -> list[NewStep]:
    """Return the steps of a sample's model calls and tool calls, in order. Pending events are skipped.

    References to attachments and shared messages are replaced by their content.

    Raises:
        InvalidRowError: the bodies exceed MAX_RESOLVED_CHARS, or a request refers to more than MAX_MESSAGES messages.
    """
    events = [event for event in sample.get("events") or [] if isinstance(event, dict)]
    sample_reader = _SampleReader(sample, _find_start(events), figure_reader)
    steps: list[NewStep] = []
    turn = -1
    for event in events:
        if event.get("event") == "model" and not event.get("pending"):
            turn += 1
            steps.append(_build_exchange(sample_reader, event, turn=turn, ordinal=len(steps) + 1))
        elif event.get("event") == "tool" and not event.get("pending"):
            steps.append(_build_tool_step(sample_reader, event, turn=max(turn, 0), ordinal=len(steps) + 1))
    return steps


def render_text(value: object) -> str:
    """Return text unchanged, None as "", and any other value as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dump_details(value).decode("ascii")


class _SampleReader:
    """Reader of a sample's events that resolves references to attachments and to shared messages."""

    def __init__(self, sample: JsonObject, started_at: datetime | None, figure_reader: FigureReader) -> None:
        self.figure_reader = figure_reader
        pools = get_object(sample.get("events_data"))
        self._attachments = get_object(sample.get("attachments"))
        self._messages = pools.get("messages") or sample.get("message_pool") or []
        self._raw_messages = pools.get("calls") or sample.get("call_pool") or []
        self._started_at = started_at
        self._remaining_chars = MAX_RESOLVED_CHARS

    def read_started_ms(self, event: JsonObject) -> float:
        """Return the milliseconds from the first event of the sample to this event; 0 if it is unknown."""
        event_at = _parse_time(event)
        elapsed_seconds = (event_at - self._started_at).total_seconds() if event_at and self._started_at else 0.0
        return self.figure_reader.read("started_ms", elapsed_seconds, ms_per_unit=1000) or 0.0

    def read_inputs(self, event: JsonObject) -> Any:
        """Return the messages that the model got in a call."""
        return event.get("input") or _pick_ranges(event.get("input_refs"), self._messages)

    def read_raw_request(self, call: JsonObject) -> Any:
        """Return the raw request of a model call, with references to shared messages replaced by the messages."""
        request = call.get("request")
        if call.get("call_refs") is None or not isinstance(request, dict):
            return request
        messages_key = str(call.get("call_key") or _MESSAGES_KEY)
        return request | {messages_key: _pick_ranges(call["call_refs"], self._raw_messages)}

    def resolve_attachments(self, value: Any, depth: int = 0) -> Any:
        """Return `value` with each reference to an attachment replaced by its text.

        A reference to an attachment that is not a text stays as it is, since the attachment could refer to itself. The
        total size over all calls of this method is limited, since one attachment may be referenced many times. Lists
        and objects that are nested deeper than _MAX_DEPTH levels are returned unchanged.

        Raises:
            InvalidRowError: the total size exceeds MAX_RESOLVED_CHARS.
        """
        if isinstance(value, str) and value.startswith(_ATTACHMENT_PREFIX):
            attachment = self._attachments.get(value.removeprefix(_ATTACHMENT_PREFIX))
            value = attachment if isinstance(attachment, str) else value
        self._remaining_chars -= CHARS_PER_VALUE + (len(value) if isinstance(value, str) else 0)
        if self._remaining_chars < 0:
            raise InvalidRowError(
                f"the bodies of one sample are too large: at most {MAX_RESOLVED_CHARS >> 20} MB in memory"
            )
        if isinstance(value, str):
            return value
        if depth > _MAX_DEPTH:
            return value
        if isinstance(value, list):
            return [self.resolve_attachments(item, depth + 1) for item in value]
        if isinstance(value, dict):
            return {key: self.resolve_attachments(item, depth + 1) for key, item in value.items()}
        return value


def _build_exchange(sample_reader: _SampleReader, event: JsonObject, *, turn: int, ordinal: int) -> NewStep:
    """Return the step of a model call.

    The bodies are the raw request and response if the log has the raw request, else the logged input and output.
    """
    call, output = get_object(event.get("call")), get_object(event.get("output"))
    has_raw_request = bool(call.get("request"))
    request_fields = {key: event.get(key) for key in ("model", "tools", "tool_choice", "config")}
    request = (
        sample_reader.read_raw_request(call)
        if has_raw_request
        else request_fields | {_MESSAGES_KEY: sample_reader.read_inputs(event)}
    )
    response = call.get("response") if has_raw_request else output
    message = sample_reader.resolve_attachments(get_object(_get_first_object(output.get("choices")).get("message")))
    usage, calls = UsageReader(output.get("usage")), _list_calls(message)
    # In a log, the input tokens do not include those of the cache.
    tokens = {
        "input_tokens": usage.sum_tokens(*_INPUT_TOKEN_FIELDS),
        "output_tokens": usage.read_tokens("output_tokens"),
    }
    for finding in usage.findings:
        sample_reader.figure_reader.note_implausible(finding.path.rpartition(".")[2])
    error = render_text(event.get("error") or output.get("error"))
    body = _render_bodies(sample_reader.resolve_attachments(request), sample_reader.resolve_attachments(response))
    details = {
        "text": render_text(message.get("content")),
        "calls_found": calls,
        "calls": calls,
        "message": message or None,
        "findings": [asdict(finding) for finding in usage.findings],
        "usage": tokens if usage.has_usage else None,
        "request_changes": [],
        "response_changes": [],
    }
    columns = _build_step_columns("exchange", turn, ordinal, sample_reader, event) | {
        **tokens,
        "path": "tool_use" if calls else "",
        "finish_reason": to_column_text(_get_first_object(output.get("choices")).get("stop_reason"), 40),
        "model_echoed": to_column_text(output.get("model"), 200),
        "error_code": "logged_error" if error else "",
        "error_message": to_column_text(error, 20_000),
        "ok": not error,
        "request_bytes": len(body["request"]),
        "response_bytes": len(body["response"]),
    }
    return NewStep(columns, body | {"facts": dump_details(details)})


def _build_tool_step(sample_reader: _SampleReader, event: JsonObject, *, turn: int, ordinal: int) -> NewStep:
    error = get_object(event.get("error"))
    arguments = sample_reader.resolve_attachments(event.get("arguments"))
    body = _render_bodies(arguments, sample_reader.resolve_attachments(event.get("result")))
    call = {"id": render_text(event.get("id")), "name": render_text(event.get("function")), "arguments": arguments}
    is_ok = not error and not event.get("failed")
    details = {"call": call, "arguments": arguments, "executed": True, "envelope": {"ok": is_ok}, "schema_errors": []}
    columns = _build_step_columns("tool", turn, ordinal, sample_reader, event) | {
        "tool_name": to_column_text(event.get("function"), 200),
        "error_code": to_column_text(error.get("type"), 60),
        "error_message": to_column_text(error.get("message"), 20_000),
        "ok": is_ok,
        "response_bytes": len(body["response"]),
    }
    return NewStep(columns, body | {"facts": dump_details(details)})


def _build_step_columns(
    kind: str, turn: int, ordinal: int, sample_reader: _SampleReader, event: JsonObject
) -> ColumnValues:
    duration_ms = sample_reader.figure_reader.read("duration_ms", event.get("working_time"), ms_per_unit=1000)
    position_columns = {"kind": kind, "execution": 1, "turn": turn, "ordinal": ordinal, "attempt": 1}
    return position_columns | {"started_ms": sample_reader.read_started_ms(event), "duration_ms": duration_ms or 0.0}


def _list_calls(message: JsonObject) -> list[JsonObject]:
    tool_calls = message.get("tool_calls")
    calls = [call for call in tool_calls if isinstance(call, dict)] if isinstance(tool_calls, list) else []
    return [{"id": call.get("id"), "name": call.get("function"), "arguments": call.get("arguments")} for call in calls]


def _render_bodies(request: Any, response: Any) -> dict[str, bytes]:
    return {"request": _render_bytes(request), "response": _render_bytes(response)}


def _render_bytes(value: Any) -> bytes:
    if value is None:
        return b""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return dump_details(value)


def _pick_ranges(references: Any, pool: Any) -> list[Any]:
    """Return the elements of `pool` in the given ranges.

    Args:
        references: list of ranges `[first index, index after the last]`; other items are ignored.
        pool: list of shared elements.

    Returns:
        The elements; [] if `references` or `pool` is not a list.

    Raises:
        InvalidRowError: the ranges have more than MAX_MESSAGES elements.
    """
    if not isinstance(references, list) or not isinstance(pool, list):
        return []
    ranges = [
        pair
        for pair in references
        if isinstance(pair, list) and len(pair) == 2 and all(isinstance(index, int) for index in pair)
    ]
    if sum(len(range(*slice(start, end).indices(len(pool)))) for start, end in ranges) > MAX_MESSAGES:
        raise InvalidRowError(f"a request of a sample refers to more than {MAX_MESSAGES:,} messages")
    return [item for start, end in ranges for item in pool[start:end]]


def _find_start(events: list[JsonObject]) -> datetime | None:
    """Return the earliest time of the events; None if no event has a time."""
    return min(filter(None, map(_parse_time, events)), default=None)


def _parse_time(event: JsonObject) -> datetime | None:
    """Return the time of an event; None if it has no time with a time zone."""
    try:
        event_at = parse_datetime(str(event.get("timestamp")))
    except ValueError:
        return None
    return event_at if event_at and event_at.tzinfo else None


def _get_first_object(value: Any) -> JsonObject:
    return get_object(value[0]) if isinstance(value, list) and value else {}
