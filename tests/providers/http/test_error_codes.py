"""Tests of the table of error codes, row by row, on bodies that providers send."""

import json
from importlib import resources

import httpx
import pytest

from toolbench.engine.events import ExchangeError
from toolbench.providers.http.aiohttp_transport import DnsError, ServerDisconnectedError, TlsError
from toolbench.providers.http.error_codes import (
    build_exchange_error,
    classify_response,
    classify_unreadable,
    lookup_error_code,
)

TABLE = resources.files("toolbench.providers").joinpath("data/outcomes.json")
CODES = [row["code"] for row in json.loads(TABLE.read_text("utf-8"))["rows"]]
KINDS = {"network", "garbage", "server", "limit", "access", "rejected", "model", "content", "ours"}
RETRYABLE = {
    "connection_refused",
    "connect_timeout",
    "connection_reset",
    "disconnected",
    "request_timeout",
    "rate_limited",
    "server_error",
    "bad_gateway",
    "unavailable",
    "gateway_timeout",
    "overloaded",
}
NOT_INFRASTRUCTURE = {"rejected", "model", "content", "ours"}


def classify(status: int, error: object, **more: object) -> ExchangeError:
    body = json.dumps({"error": error} | more).encode()
    found = classify_response(status=status, headers={}, body=body)
    assert found is not None
    return found


def test_error_code_table_rows_are_complete_and_unique() -> None:
    assert len(set(CODES)) == len(CODES)
    for row in map(lookup_error_code, CODES):
        assert row.error_class in KINDS
        assert row.sentence.endswith(".")
        assert row.infrastructure is (row.error_class not in NOT_INFRASTRUCTURE)


def test_error_code_table_retryable_rows_are_infrastructure_errors() -> None:
    retryable = [row for row in map(lookup_error_code, CODES) if row.retryable]
    assert {row.code for row in retryable} == RETRYABLE
    assert all(row.infrastructure for row in retryable)


def test_lookup_error_code_unknown_code_raises_key_error() -> None:
    with pytest.raises(KeyError):
        lookup_error_code("no_such_code")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "request_rejected"),
        (401, "authentication"),
        (402, "payment_required"),
        (403, "forbidden"),
        (404, "not_found"),
        (405, "request_rejected"),
        (408, "request_timeout"),
        (409, "conflict"),
        (413, "request_too_large"),
        (418, "request_rejected"),
        (422, "unprocessable"),
        (429, "rate_limited"),
        (500, "server_error"),
        (501, "server_failed"),
        (502, "bad_gateway"),
        (503, "unavailable"),
        (504, "gateway_timeout"),
        (524, "server_failed"),
        (529, "overloaded"),
        (999, "not_http"),
    ],
)
@pytest.mark.parametrize("body", [b"", b"<html>Bad Gateway</html>", b'{"error": {"message": "x"}}', b"[", b"\x00\xff"])
def test_classify_response_uses_the_status_if_the_text_says_nothing(status: int, code: str, body: bytes) -> None:
    found = classify_response(status=status, headers={}, body=body)
    assert found is not None
    assert (found.code, found.status) == (code, status)
    assert found.message


@pytest.mark.parametrize(
    ("status", "error", "code"),
    [
        (404, {"message": "No endpoints found that support tool use. To learn more ..."}, "tools_unsupported"),
        (404, {"message": "No endpoints found that support the provided 'tool_choice' value."}, "tools_unsupported"),
        (400, {"message": "registry.ollama.ai/library/gemma:2b does not support tools"}, "tools_unsupported"),
        (500, {"message": "tools param requires --jinja flag"}, "tools_unsupported"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice', "tools_unsupported"),
        (404, {"message": "No endpoints found for nobody/nothing."}, "not_found"),
        (
            500,
            {"message": "The model produced output that does not match the expected peg-native format"},
            "model_format",
        ),
        (400, {"message": "Failed to call a function.", "code": "tool_use_failed"}, "model_format"),
        (500, {"message": "Failed to parse tools: tools must be an array"}, "request_rejected_as_500"),
        (500, {"message": "Failed to parse tool call arguments as JSON: ..."}, "request_rejected_as_500"),
        (500, {"message": 'Failed to parse messages: Missing tool call type: "ex0"'}, "request_rejected_as_500"),
        (500, {"message": "Cannot use both json_schema and grammar"}, "request_rejected_as_500"),
        (500, {"message": "image input is not supported"}, "request_rejected_as_500"),
        (500, {"message": "Unexpected empty grammar stack after accepting piece: 6"}, "request_rejected_as_500"),
        (500, {"message": "Internal Server Error"}, "server_error"),
        (400, {"message": "Invalid tool_choice: bogus", "type": "invalid_request_error"}, "request_rejected"),
        (400, {"message": "request (921 tokens) ...", "type": "exceed_context_size_error"}, "context_overflow"),
        (400, {"message": "This model's maximum context length is 8192 tokens"}, "context_overflow"),
        (400, {"code": "context_length_exceeded", "message": "too long"}, "context_overflow"),
        (400, {"message": "API key not valid. Please pass a valid API key."}, "authentication"),
        (429, {"message": "You exceeded your current quota", "type": "insufficient_quota"}, "payment_required"),
        (429, {"message": "Rate limit reached for requests"}, "rate_limited"),
        (403, {"message": "Content violates usage guidelines. SAFETY_CHECK_TYPE_BIO"}, "content_refused"),
        (403, {"message": "moderation", "metadata": {"flagged_input": "..."}}, "content_refused"),
        (400, {"code": "content_filter", "message": "The response was filtered"}, "content_refused"),
        (403, {"message": "Key limit exceeded"}, "forbidden"),
    ],
)
def test_classify_response_text_decides_between_codes_of_a_status(status: int, error: object, code: str) -> None:
    found = classify(status, error)
    assert found.code == code
    assert found.tool_support is (code == "tools_unsupported")
    assert (found.infrastructure, found.retryable) == (
        lookup_error_code(code).infrastructure,
        lookup_error_code(code).retryable,
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"code": 502, "message": "Provider returned error"}, "bad_gateway"),
        ({"code": "429", "message": "slow down"}, "rate_limited"),
        ({"code": "rate_limit_exceeded", "message": "slow down"}, "rate_limited"),
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded"),
        ({"code": 404, "message": "No endpoints found that support tool use"}, "tools_unsupported"),
        ({"code": "content_filter", "message": "filtered"}, "content_refused"),
        ({"code": "context_length_exceeded", "message": "too long"}, "context_overflow"),
        ("this model does not support tools", "tools_unsupported"),
        ({"message": "something odd"}, "error_in_answer"),
        ("something odd", "error_in_answer"),
        ({"code": 10**400, "message": "odd"}, "error_in_answer"),
        ({"code": "4" * 5000, "message": "odd"}, "error_in_answer"),
        ({"code": "²", "message": "odd"}, "error_in_answer"),
    ],
)
def test_classify_response_error_in_a_success_uses_its_own_code(error: object, code: str) -> None:
    found = classify(200, error)
    assert (found.code, found.status) == (code, 200)


def test_classify_response_error_in_choice_after_output_is_answer_cut() -> None:
    choice = {"error": {"code": 502, "message": "upstream died"}, "message": {"content": ""}}
    before_output = classify_response(status=200, headers={}, body=json.dumps({"choices": [choice]}).encode())
    choice_with_output = choice | {"message": {"content": "The weather is"}}
    after_output = classify_response(
        status=200, headers={}, body=json.dumps({"choices": [choice_with_output]}).encode()
    )
    assert before_output is not None
    assert after_output is not None
    assert (before_output.code, after_output.code) == ("bad_gateway", "answer_cut")


def test_classify_response_error_event_after_output_is_answer_cut() -> None:
    start = b'data: {"choices": [{"delta": {"role": "assistant", "content": null}}]}\n\n'
    token = b'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\n'
    error = b'data: {"error": {"code": 500, "message": "The model produced output that does not match"}}\n\n'
    before = classify_response(status=200, headers={}, body=start + error)
    after = classify_response(status=200, headers={}, body=start + token + error)
    assert before is not None
    assert after is not None
    assert (before.code, after.code) == ("model_format", "answer_cut")


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices": [{"message": {"content": "an \\"error\\" in words"}}]}',
        b'{"choices": [{"message": {"content": "hi"}}], "error": null}',
        b'  {"choices": []}',
        b'data: {"choices": []}\n\ndata: [DONE]\n\n',
    ],
)
def test_classify_response_success_without_an_error_is_none(body: bytes) -> None:
    assert classify_response(status=200, headers={}, body=body) is None


@pytest.mark.parametrize("body", [b"", b"<!doctype html>", b"\x00\x00", b"null", b"[" * 100_000, b"\xff\xfe", b"OK"])
def test_classify_response_garbage_with_success_is_not_an_answer(body: bytes) -> None:
    found = classify_response(status=200, headers={}, body=body)
    assert found is not None
    assert (found.code, found.infrastructure, found.retryable) == ("not_an_answer", True, False)


def test_classify_unreadable_other_json_object_is_malformed_answer() -> None:
    assert classify_unreadable(200, b'{"hello": 1}', "no choices").code == "malformed_answer"
    assert classify_unreadable(200, b'{"hello": 1').code == "not_an_answer"
    assert classify_unreadable(200, b'{"a":' * 100_000).code == "not_an_answer"


@pytest.mark.parametrize(
    ("exception", "code"),
    [
        (httpx.ConnectError("refused"), "connection_refused"),
        (DnsError("nowhere"), "dns"),
        (TlsError("bad certificate"), "tls"),
        (httpx.ConnectTimeout("slow"), "connect_timeout"),
        (httpx.ReadTimeout("slow"), "read_timeout"),
        (ServerDisconnectedError("gone"), "disconnected"),
        (httpx.ReadError("reset"), "connection_reset"),
        (httpx.WriteError("reset"), "connection_reset"),
        (httpx.RemoteProtocolError("what?"), "not_http"),
        (httpx.UnsupportedProtocol("ftp"), "not_sendable"),
        (httpx.LocalProtocolError("newline"), "not_sendable"),
        (httpx.DecodingError("br"), "encoding_unreadable"),
    ],
)
def test_classify_response_of_network_exception_has_its_code(exception: Exception, code: str) -> None:
    found = classify_response(status=None, headers={}, body=b"", exception=exception)
    assert found is not None
    assert found.code == code
    assert found.message == str(exception)


def test_classify_response_exception_within_the_body_is_answer_cut() -> None:
    for exception in (httpx.ReadError("reset"), httpx.ReadTimeout("slow"), httpx.RemoteProtocolError("bad chunk")):
        found = classify_response(status=200, headers={}, body=b'{"ch', exception=exception)
        assert found is not None
        assert (found.code, found.infrastructure, found.retryable) == ("answer_cut", False, False)


def test_classify_response_error_status_comes_before_its_broken_body() -> None:
    found = classify_response(status=503, headers={}, body=b"ups", exception=httpx.ReadError("reset"))
    assert found is not None
    assert found.code == "unavailable"


def test_classify_response_redirect_names_its_target() -> None:
    found = classify_response(status=302, headers={"location": "https://elsewhere.example/login"}, body=b"")
    assert found is not None
    assert "https://elsewhere.example/login" in found.message


@pytest.mark.parametrize(
    ("raw", "hint"),
    [
        ('{"error": {"message": "bad schema"}}', "Fireworks: bad schema"),
        ('{"message": "bad schema"}', "Fireworks: bad schema"),
        ('[{"error": {"message": "bad schema"}}]', "Fireworks: bad schema"),
        ('{"detail": "bad schema"}', "Fireworks: bad schema"),
        ("bad schema", "Fireworks: bad schema"),
        ({"error": "bad schema"}, "Fireworks: bad schema"),
        (None, "Fireworks"),
    ],
)
def test_classify_response_hint_names_the_upstream_and_its_message(raw: object, hint: str) -> None:
    error = {"code": 400, "message": "Provider returned error", "metadata": {"provider_name": "Fireworks", "raw": raw}}
    found = classify(400, error)
    assert (found.message, found.hint) == ("Provider returned error", hint)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"object": "error", "message": "vllm says no"}', "vllm says no"),
        (b'{"detail": [{"msg": "field required"}]}', "field required"),
        (b'[{"error": {"message": "gemini says no"}}]', "gemini says no"),
        (b'{"error": "ollama says no"}', "ollama says no"),
        (b"plain words", "plain words"),
    ],
)
def test_classify_response_finds_the_message_in_every_shape(body: bytes, message: str) -> None:
    found = classify_response(status=400, headers={}, body=body)
    assert found is not None
    assert found.message == message


def test_build_exchange_error_bounds_the_message() -> None:
    assert len(build_exchange_error("server_error", "x" * 10**6, hint="y" * 10**6).message) == 2000


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("invalid_request_error", "request_rejected"),
        ("authentication_error", "authentication"),
        ("billing_error", "payment_required"),
        ("permission_error", "forbidden"),
        ("not_found_error", "not_found"),
        ("conflict_error", "conflict"),
        ("request_too_large", "request_too_large"),
        ("rate_limit_error", "rate_limited"),
        ("timeout_error", "gateway_timeout"),
        ("api_error", "server_error"),
        ("overloaded_error", "overloaded"),
    ],
)
def test_classify_response_anthropic_error_in_200_uses_its_type(kind: str, code: str) -> None:
    error_event = {"type": "error", "error": {"type": kind, "message": "No."}, "request_id": "req_1"}
    start = {"type": "message_start", "message": {"content": []}}
    stream = b"".join(f"event: {item['type']}\ndata: {json.dumps(item)}\n\n".encode() for item in (start, error_event))
    for body in (json.dumps(error_event).encode(), stream):
        found = classify_response(status=200, headers={}, body=body)
        assert found is not None
        assert found.code == code


def test_classify_response_anthropic_error_after_a_block_is_answer_cut() -> None:
    block = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "We"}}
    error_event = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    stream = b"".join(f"data: {json.dumps(item)}\n\n".encode() for item in (block, error_event))
    found = classify_response(status=200, headers={}, body=stream)
    assert found is not None
    assert found.code == "answer_cut"


def test_classify_response_anthropic_without_credit_is_payment_required() -> None:
    assert classify(400, {"type": "invalid_request_error", "message": "Your credit balance is too low"}).code == (
        "payment_required"
    )


@pytest.mark.parametrize(
    "error_event",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "Rate limit reached", "param": None},
        {"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "Rate limit"}}},
    ],
)
def test_classify_response_responses_error_after_output_is_answer_cut(error_event: dict[str, object]) -> None:
    start: dict[str, object] = {"type": "response.created", "response": {"error": None, "output": []}}
    item = {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}}
    codes = []
    for events in ([start, error_event], [start, item, error_event]):
        stream = b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events)
        found = classify_response(status=200, headers={}, body=stream)
        codes.append(found.code if found else "")
    assert codes == ["rate_limited", "answer_cut"]
