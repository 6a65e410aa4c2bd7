"""Sending of spans to an endpoint over HTTP: batches, retries, and answers of the endpoint."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from toolbench.lab.interchange.otlp import send
from toolbench.lab.interchange.otlp.send import JSON, PROTOBUF, EndpointError, OtlpEndpoint, send_lines
from toolbench.lab.schedules.delivery import MAX_ATTEMPTS
from toolbench.providers.scripted_server import ConnectionEnd, ReceivedRequest, ScriptedReply, ScriptedServer

LINES = [b'{"resourceSpans":[{"number":%d}]}\n' % number for number in range(5)]
Script = Callable[[ReceivedRequest], ScriptedReply]


def build_script(*replies: ScriptedReply) -> Script:
    """Return a script with these replies in order, which then repeats the last one."""
    remaining = list(replies)
    return lambda request: remaining.pop(0) if len(remaining) > 1 else remaining[0]


class Sending:
    """One sending to a scripted endpoint, with the requests it received, the pauses and the reports."""

    def __init__(self, script: Script, protocol: str = JSON) -> None:
        self.pauses: list[float] = []
        self.reports: list[str] = []
        with ScriptedServer(script) as server:
            url = f"{server.base_url}/v1/traces"
            endpoint = OtlpEndpoint(url, {"x-key": "k"}, self.pauses.append, self.reports.append, protocol)
            self.sent, self.error = 0, ""
            try:
                self.sent = send_lines(iter(LINES), endpoint)
            except EndpointError as error:
                self.error = str(error)
            self.requests = list(server.seen)

    def list_numbers(self) -> Iterator[list[int]]:
        for request in self.requests:
            yield [spans["number"] for spans in json.loads(request.body)["resourceSpans"]]


def test_send_lines_sends_one_request_with_headers() -> None:
    sending = Sending(build_script(ScriptedReply(200, body=b"{}")))
    assert (sending.sent, list(sending.list_numbers())) == (5, [[0, 1, 2, 3, 4]])
    (request,) = sending.requests
    assert request.path.endswith("/v1/traces")
    assert (request.headers["content-type"], request.headers["x-key"]) == ("application/json", "k")


def test_send_lines_with_protobuf_sends_binary_spans() -> None:
    sending = Sending(build_script(ScriptedReply(200)), PROTOBUF)
    (request,) = sending.requests
    assert (sending.sent, request.headers["content-type"]) == (5, "application/x-protobuf")
    assert request.body == b"\x0a\x00" * 5  # resource spans without fields that OTLP defines


def test_send_lines_splits_large_exports_into_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send, "MAX_BATCH_BYTES", 30)
    sending = Sending(build_script(ScriptedReply(200)))
    assert (sending.sent, list(sending.list_numbers())) == (5, [[0, 1], [2, 3], [4]])


@pytest.mark.parametrize(
    "first", [*map(ScriptedReply, (429, 502, 503, 504)), ScriptedReply(raw=b"", ending=ConnectionEnd.CLOSE)]
)
def test_send_lines_reports_and_repeats_a_failed_attempt(first: ScriptedReply) -> None:
    sending = Sending(build_script(first, ScriptedReply(200)))
    assert (sending.sent, sending.pauses, sending.error) == (5, [1.0], "")
    (report,) = sending.reports
    assert f"Attempt 1 of {MAX_ATTEMPTS}; the next one follows in 1 s." in report


@pytest.mark.parametrize(
    ("retry_after", "pauses"), [("7", [7.0, 2.0]), ("0", [1.0, 2.0]), ("soon", [1.0, 2.0]), ("-3", [1.0, 2.0])]
)
def test_send_lines_waits_at_least_the_retry_after_time(retry_after: str, pauses: list[float]) -> None:
    busy = ScriptedReply(429, {"Retry-After": retry_after})
    sending = Sending(build_script(busy, ScriptedReply(502), ScriptedReply(200)))
    assert (sending.sent, sending.pauses) == (5, pauses)


def test_send_lines_after_the_last_attempt_raises_the_reason() -> None:
    sending = Sending(build_script(ScriptedReply(503)))
    assert len(sending.requests) == MAX_ATTEMPTS
    assert sending.pauses == [2.0**power for power in range(MAX_ATTEMPTS - 1)]
    assert sending.error == ("The endpoint answered with status 503. This was attempt 8 of 8. Trials sent before: 0.")


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (ScriptedReply(401), "status 401. Check the key in the headers."),
        (ScriptedReply(404), "status 404. Check the address."),
        (ScriptedReply(400), "status 400."),
        (ScriptedReply(415), "status 415. Send the other form, with --protocol."),
        (ScriptedReply(408), "status 408."),
        (ScriptedReply(500), "status 500."),
        (ScriptedReply(302, {"location": "/elsewhere"}), "status 302."),
        (ScriptedReply(body=b'{"partialSuccess": {"rejectedSpans": "3", "errorMessage": "too old"}}'),
         "rejected 3 spans: too old."),
    ],
)  # fmt: skip
def test_send_lines_does_not_repeat_a_refused_request(reply: ScriptedReply, sentence: str) -> None:
    sending = Sending(build_script(reply))
    assert sentence in sending.error
    assert (len(sending.requests), sending.reports) == (1, [])


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"\x0a\x0b\x08\x03\x12\x07too old", "The endpoint rejected 3 spans: too old. Trials sent before: 0."),
        (b"\x0a\x02\x08\x03", "The endpoint rejected 3 spans: no reason. Trials sent before: 0."),
        (b"\x0a\x02\x08\x00", ""),
        (b"", ""),
        (b"\x0a\xff", ""),
    ],
)
def test_send_lines_reads_rejected_spans_of_a_binary_answer(body: bytes, error: str) -> None:
    reply = ScriptedReply(200, {"content-type": "application/x-protobuf"}, body)
    assert Sending(build_script(reply), PROTOBUF).error == error


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"partialSuccess": {}}', b'{"partialSuccess": {"rejectedSpans": 0}}']
)
def test_send_lines_accepts_other_bodies_of_a_success(body: bytes) -> None:
    assert Sending(build_script(ScriptedReply(body=body))).sent == 5


@pytest.mark.parametrize("url", ["ftp://x/v1/traces", "not a url", "http://x\x00"])
def test_send_lines_refuses_an_invalid_url_without_retry(url: str) -> None:
    pauses: list[Any] = []
    with pytest.raises(EndpointError, match="Check the address"):
        send_lines(iter(LINES), OtlpEndpoint(url, pause=pauses.append, report=pauses.append))
    assert pauses == []
