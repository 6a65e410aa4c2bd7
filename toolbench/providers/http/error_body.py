"""Parsing of the error in a response body, in the shapes that providers and routers use."""

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import get_object, read_json
from toolbench.engine.wire_formats.sse import EventReader, Payload

MAX_PLAIN_TEXT_BYTES = 400
REFUSED_CALL_CODE = "tool_use_failed"  # Groq's code for a call that it cannot read
_MAX_VALUES = 1000  # JSON values of one error that are searched for named places
_MAX_PLACE_CHARS = 200
_OUTPUT_FIELDS = ("content", "tool_calls", "function_call", "reasoning_content", "reasoning", "refusal")
_OUTPUT_EVENTS = ("content_block_", "response.output_item.", "response.output_text.")  # starts of event types
_SSE_FIELDS = (b"data", b"error", b"event", b"id", b"retry")  # `error` is sent by old versions of llama.cpp


@dataclass(frozen=True, slots=True)
class UpstreamError:
    """Error as the provider or a router reported it.

    Attributes:
        message: the error's sentence; if it has none, `hint`.
        code: the error's code as text, "" if it has none.
        kind: the error's `type` as text, "" if it has none.
        hint: "<upstream's name>: <upstream's message>", or one of the two, if a router passes them on, else "".
        text: the error as JSON, or as plain text of at most `MAX_PLAIN_TEXT_BYTES`; in lower case, for searching.
        after_output: whether the answer had begun before the error.
        generation: the model's output if the error quotes it (Groq), else "".
        named_places: places in the request that the error names (`param` of OpenAI, `loc` of pydantic).
    """

    message: str
    code: str = ""
    kind: str = ""
    hint: str = ""
    text: str = ""
    after_output: bool = False
    generation: str = ""
    named_places: tuple[str, ...] = ()

    @property
    def refuses_call(self) -> bool:
        """Whether the server refuses a call that it could not read.

        Part of the answer may precede the refusal.
        """
        return bool(self.generation) or self.code == REFUSED_CALL_CODE


def parse_json(body: bytes | str) -> Any:
    """Return the value of a JSON text; None if `body` is `null`, is not JSON or is nested too deeply."""
    try:
        return read_json(body if isinstance(body, str) else body.decode())
    except (InvalidJsonError, UnicodeDecodeError):
        return None


def parse_error(body: bytes, *, is_error: bool) -> UpstreamError | None:
    """Return the error inside `body`.

    Args:
        body: the body without content coding.
        is_error: whether the status is that of an error. If so, any body is read as an error, also plain text. If not,
            only an error inside an answer or inside an event of a stream is read.

    Returns:
        None if the body holds no error; never None with `is_error`.
    """
    payload = parse_json(body)
    if payload is None and not is_error:
        return next(_iter_stream_errors(body), None)
    if isinstance(payload, list) and payload:
        payload = payload[0]
    error = _find_error(payload)
    if error is not None:
        return _build_error(error, after_output=_has_output(payload))
    if not is_error:
        return None
    if isinstance(payload, dict):
        return _build_error(payload, after_output=False)
    plain = body[:MAX_PLAIN_TEXT_BYTES].decode("utf-8", "replace").strip()
    return UpstreamError(message=plain, text=plain.lower())


def _find_error(payload: Any) -> Any:
    """Return the error object or text in an answer, in its first choice or in an event of a stream, or None."""
    if not isinstance(payload, dict):
        return None
    if payload.get("error"):
        return payload["error"]
    if payload.get("object") == "error" or payload.get("type") == "error":
        return payload
    response = payload.get("response")  # in events of the Responses API
    if isinstance(response, dict) and response.get("error"):
        return response["error"]
    choices = payload.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0].get("error") or None
    return None


def _has_output(payload: Any) -> bool:
    """Return whether an answer or an event of a stream has output of the model, in any wire format."""
    if not isinstance(payload, dict):
        return False
    if str(payload.get("type", "")).startswith(_OUTPUT_EVENTS) or payload.get("content") or payload.get("output"):
        return True
    choices = payload.get("choices")
    if not (isinstance(choices, list) and choices and isinstance(choices[0], dict)):
        return False
    message = choices[0].get("message") or choices[0].get("delta")
    return bool(choices[0].get("text")) or (
        isinstance(message, dict) and any(message.get(key) for key in _OUTPUT_FIELDS)
    )


def has_answer_begun(body: bytes) -> bool:
    """Return whether the model's answer has begun in a body that broke off.

    Blank lines, comments, pings and empty first events of a stream are no part of an answer. An incomplete `data` or
    `error` line is part of an answer as soon as it holds more than the field's name.
    """
    return any(_is_answer_line(line.strip()) for line in body.splitlines())


def _is_answer_line(line: bytes) -> bool:
    name, _, value = line.partition(b":")
    # The name may be incomplete; a comment has the name b"".
    if not value.strip() and any(field.startswith(name) for field in _SSE_FIELDS):
        return False
    if name not in _SSE_FIELDS:
        return bool(name)
    if name not in (b"data", b"error"):
        return False
    payload = parse_json(value)
    return payload is None or _has_output(payload)


def has_json_event(body: bytes) -> bool:
    """Return whether the body is an event stream with at least one JSON object."""
    return any(isinstance(payload, dict) for payload in _parse_events(body))


def _parse_events(body: bytes) -> Iterator[Payload]:
    reader = EventReader()
    yield from reader.feed(body)
    yield from reader.close()


def _iter_stream_errors(body: bytes) -> Iterator[UpstreamError]:
    """Yield the errors in the events of a stream."""
    after_output = False
    for payload in _parse_events(body):
        error = _find_error(payload)
        if error is not None:
            yield _build_error(error, after_output=after_output)
        after_output = after_output or _has_output(payload)


def _build_error(error: Any, *, after_output: bool) -> UpstreamError:
    if not isinstance(error, dict):
        message = str(error)
        return UpstreamError(message=message, text=message.lower(), after_output=after_output)
    message = find_message(error)
    code, kind = (str(error[key]) if error.get(key) is not None else "" for key in ("code", "type"))
    metadata = get_object(error.get("metadata"))
    upstream_name, raw = metadata.get("provider_name"), metadata.get("raw")
    upstream_message = find_message(parse_json(raw) or raw if isinstance(raw, str) else raw)
    hint = ": ".join(str(part) for part in (upstream_name, upstream_message) if part)
    text = json.dumps(error, ensure_ascii=False, default=str).lower()
    generation = error.get("failed_generation")
    return UpstreamError(
        message or hint,
        code,
        kind,
        hint=hint,
        text=text,
        after_output=after_output,
        generation=generation if isinstance(generation, str) else "",
        named_places=tuple(dict.fromkeys(_iter_named_places(error, parse_json(raw) if isinstance(raw, str) else raw))),
    )


def _iter_named_places(*values: Any) -> Iterator[str]:
    """Yield the places in the request that fields of an error name, at any depth.

    The fields `input` and `ctx` of pydantic are skipped: they hold values, not places.
    """
    queue = deque(values)
    for _ in range(_MAX_VALUES):
        if not queue:
            return
        value = queue.popleft()
        if isinstance(value, list):
            queue.extend(islice(value, _MAX_VALUES))
        elif isinstance(value, dict):
            param, loc = value.get("param"), value.get("loc")
            if isinstance(param, str) and param.strip():
                yield param.strip()[:_MAX_PLACE_CHARS]
            if isinstance(loc, list) and loc:
                parts = (str(part) for part in loc[:_MAX_PLACE_CHARS] if part != "body")
                yield ".".join(parts)[:_MAX_PLACE_CHARS]
            field_values = (field_value for name, field_value in value.items() if name not in ("input", "ctx"))
            queue.extend(islice(field_values, _MAX_VALUES))


def find_message(value: Any) -> str:
    """Return the sentence in an error of any shape, "" if there is none in the first eight levels.

    Args:
        value: text, an object with `error`, `message`, `detail` or `msg`, or a list of these, whose first item counts.
    """
    for _ in range(8):
        if isinstance(value, dict):
            value = next((value[key] for key in ("error", "message", "detail", "msg") if value.get(key)), None)
        elif isinstance(value, list):
            value = value[0] if value else None
        else:
            break
    return value if isinstance(value, str) else ""
