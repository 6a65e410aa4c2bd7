"""Sending of exported trials to an endpoint for OTLP over HTTP, in its binary form or as JSON."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import httpx

from toolbench.engine.strict_json import get_object
from toolbench.lab.interchange.otlp.protobuf import encode_traces, parse_rejection
from toolbench.lab.schedules.delivery import MAX_ATTEMPTS
from toolbench.providers.http.retry_delay import parse_retry_after

SEND_SECONDS = 10.0  # limit for the connection, and for each part that is sent or received
MAX_BATCH_BYTES = 4 << 20  # of JSON in one request, unless a trial is larger
FIRST_PAUSE_SECONDS = 1.0  # doubled after each attempt
_RETRIED_STATUSES = frozenset({429, 502, 503, 504})  # the retryable statuses of the OTLP/HTTP specification
PROTOBUF, JSON = "http/protobuf", "http/json"  # values of the environment variable OTEL_EXPORTER_OTLP_PROTOCOL
PROTOCOLS = {PROTOBUF: "application/x-protobuf", JSON: "application/json"}  # content type by protocol
_PREFIX, _SEPARATOR, _SUFFIX = b'{"resourceSpans":[', b",", b"]}"
_HINT_BY_STATUS = {
    401: " Check the key in the headers.",
    403: " Check the key in the headers.",
    404: " Check the address.",
    415: " Send the other form, with --protocol.",
}


class EndpointError(Exception):
    """Failure to send spans to an endpoint; the message gives the reason, without the endpoint's address."""


@dataclass(frozen=True, slots=True)
class OtlpEndpoint:
    """Endpoint that receives traces.

    Attributes:
        url: complete address, such as `http://127.0.0.1:4318/v1/traces`.
        headers: headers of each request; they may contain an API key.
        pause: called with the seconds to wait before another attempt.
        report: called with a sentence about each failed attempt that is repeated.
        protocol: a key of PROTOCOLS; every endpoint takes PROTOBUF, some also JSON.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    pause: Callable[[float], None] = time.sleep
    report: Callable[[str], None] = print
    protocol: str = PROTOBUF


@dataclass(frozen=True, slots=True)
class _AttemptResult:
    """Result of one request.

    Attributes:
        problem: a sentence about the failure; "" if the endpoint accepted the request and rejected no span, or if it
            accepted the request with an answer that cannot be read.
        may_repeat: whether the request may be sent again.
        retry_after_seconds: minimum pause before the next attempt that the endpoint demands; 0 if it demands none.
    """

    problem: str
    may_repeat: bool = False
    retry_after_seconds: float = 0.0


def send_lines(lines: Iterable[bytes], endpoint: OtlpEndpoint) -> int:
    """Send lines of OTLP JSON in batches and return the number of trials that were sent.

    A request without an answer, or with a status of _RETRIED_STATUSES, is sent at most MAX_ATTEMPTS times.

    Raises:
        EndpointError: the endpoint refused a batch or some of its spans, or the last attempt failed. Earlier batches
            were sent.
    """
    sent = 0
    with httpx.Client(timeout=SEND_SECONDS, trust_env=False) as client:
        for batch in _iter_batches(lines):
            try:
                _send_batch(client, batch, endpoint)
            except EndpointError as error:
                raise EndpointError(f"{error} Trials sent before: {sent:,}.") from error
            sent += len(batch)
    return sent


def _iter_batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the resource spans of lines in batches of at most MAX_BATCH_BYTES. A larger line is a batch of its own."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        spans = line.strip().removeprefix(_PREFIX).removesuffix(_SUFFIX)
        if batch and size + len(spans) > MAX_BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(spans)
        size += len(spans)
    if batch:
        yield batch


def _send_batch(client: httpx.Client, batch: list[bytes], endpoint: OtlpEndpoint) -> None:
    """Send a batch, with up to MAX_ATTEMPTS attempts.

    Raises:
        EndpointError: the endpoint refused the batch or some of its spans, or the last attempt failed.
    """
    body = _PREFIX + _SEPARATOR.join(batch) + _SUFFIX
    body = encode_traces(json.loads(body)) if endpoint.protocol == PROTOBUF else body
    backoff_seconds = FIRST_PAUSE_SECONDS
    for attempt in range(1, MAX_ATTEMPTS + 1):
        result = _post(client, body, endpoint)
        if not result.problem:
            return
        if not result.may_repeat:
            raise EndpointError(result.problem)
        if attempt == MAX_ATTEMPTS:
            raise EndpointError(f"{result.problem} This was attempt {attempt} of {MAX_ATTEMPTS}.")
        seconds = max(backoff_seconds, result.retry_after_seconds)
        endpoint.report(f"{result.problem} Attempt {attempt} of {MAX_ATTEMPTS}; the next one follows in {seconds:g} s.")
        endpoint.pause(seconds)
        backoff_seconds *= 2


def _post(client: httpx.Client, body: bytes, endpoint: OtlpEndpoint) -> _AttemptResult:
    """Send one request; return a failure instead of raising it."""
    headers = {**endpoint.headers, "content-type": PROTOCOLS[endpoint.protocol]}
    try:
        answer = client.post(endpoint.url, content=body, headers=headers)
    except httpx.TimeoutException:
        return _AttemptResult(f"The endpoint did not answer within {SEND_SECONDS:g} s.", may_repeat=True)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, ValueError) as error:
        return _AttemptResult(f"The request cannot be sent: {type(error).__name__}. Check the address and the headers.")
    except httpx.HTTPError as error:
        return _AttemptResult(f"The endpoint could not be reached: {type(error).__name__}.", may_repeat=True)
    if answer.is_success:
        return _AttemptResult(_find_rejection(answer))
    return _AttemptResult(
        f"The endpoint answered with status {answer.status_code}.{_HINT_BY_STATUS.get(answer.status_code, '')}",
        may_repeat=answer.status_code in _RETRIED_STATUSES,
        retry_after_seconds=parse_retry_after(dict(answer.headers)) or 0.0,
    )


def _find_rejection(answer: httpx.Response) -> str:
    """Return a sentence about the spans that the endpoint rejected although it accepted the request.

    Returns:
        The sentence; "" if no span was rejected, or if the answer cannot be read.
    """
    try:
        if "protobuf" in answer.headers.get("content-type", ""):
            count, message = parse_rejection(answer.content)
            count_text = str(count)
        else:
            partial = get_object(get_object(json.loads(answer.content or b"{}")).get("partialSuccess"))
            count_text, message = str(partial.get("rejectedSpans") or "0"), str(partial.get("errorMessage") or "")
    except (ValueError, RecursionError):
        return ""
    reason = message[:300] or "no reason"
    return f"The endpoint rejected {count_text[:20]} spans: {reason}." if count_text != "0" else ""
