"""Tests of the HTTP client on real sockets: what it sends, and every way in which an exchange can fail."""

import asyncio
import gzip
import itertools
import socket
import ssl
import threading
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from toolbench.providers.endpoint import Endpoint, Timeouts
from toolbench.providers.http.client import HttpClient
from toolbench.providers.http.exchange import MAX_BODY_BYTES, MAX_TIMED_CHUNKS, MIN_THREAD_MASKING_BYTES, Exchange
from toolbench.providers.scripted_server import ConnectionEnd, ScriptedReply, ScriptedServer, json_reply, text_reply

PATH = "chat/completions"
GIGABYTE = 1024**3


def send(endpoint: Endpoint, body: bytes | None = b"{}") -> Exchange:
    async def once() -> Exchange:
        async with HttpClient() as client:
            exchange = client.build_exchange(endpoint, PATH, body)
            await client.send(exchange)
            return exchange

    return asyncio.run(once())


def find_code(exchange: Exchange) -> str:
    error = exchange.find_error()
    return error.code if error else ""


def build_self_signed_context(path: Path) -> ssl.SSLContext:
    """Return the TLS context of a server with a self-signed certificate, which is stored in `path`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    signed = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(private + signed.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def test_send_sends_exact_bytes_with_key_and_extra_headers(provider: ScriptedServer) -> None:
    provider.set_script(text_reply("hello"))
    endpoint = provider.endpoint(key="sk-secret-1234", headers={"X-Title": "bench"})
    exchange = send(endpoint, b'{"a":  1}')
    (seen,) = provider.seen
    assert (seen.method, seen.path, seen.body) == ("POST", "/v1/chat/completions", b'{"a":  1}')
    assert seen.headers["authorization"] == "Bearer sk-secret-1234"
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["accept-encoding"] == "identity"
    assert seen.headers["x-title"] == "bench"
    assert (exchange.status, find_code(exchange)) == (200, "")


@pytest.mark.parametrize("wire", ["chat", "anthropic", "responses"])
def test_send_key_header_of_the_endpoint_has_the_bare_key(provider: ScriptedServer, wire: str) -> None:
    provider.set_script(text_reply("your key is short"))
    exchange = send(provider.endpoint(key="short", key_header="API-Key", wire=wire, query="api-version=1"))
    (seen,) = provider.seen
    assert seen.headers["api-key"] == "short"
    assert seen.headers.keys().isdisjoint({"authorization", "x-api-key"})
    assert seen.path.endswith("?api-version=1")
    assert exchange.template.masked_headers["api-key"] == "*****"


def test_send_without_a_body_uses_get(provider: ScriptedServer) -> None:
    provider.set_script(json_reply({"data": []}))
    send(provider.endpoint(), None)
    assert provider.seen[0].method == "GET"


def test_send_uses_one_connection_for_many_requests(provider: ScriptedServer) -> None:
    provider.set_script(text_reply("one"), text_reply("two"))

    async def twice() -> list[int | None]:
        async with HttpClient() as client:
            statuses = []
            for _ in range(2):
                exchange = client.build_exchange(provider.endpoint(), PATH, b"{}")
                await client.send(exchange)
                statuses.append(exchange.status)
            return statuses

    assert asyncio.run(twice()) == [200, 200]
    assert provider.connections == 1


def test_send_refused_connection_is_connection_refused() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # it does not listen
        exchange = send(Endpoint(f"http://127.0.0.1:{bound.getsockname()[1]}", "m"))
    assert isinstance(exchange.exception, httpx.ConnectError)
    assert find_code(exchange) == "connection_refused"


def test_send_to_a_name_without_address_is_dns() -> None:
    assert find_code(send(Endpoint("http://nowhere.invalid", "m"))) == "dns"


def test_send_by_https_to_a_server_without_tls_is_tls(provider: ScriptedServer) -> None:
    base_url = provider.base_url.replace("http://", "https://")
    assert find_code(send(Endpoint(base_url, "m"))) == "tls"


def test_send_to_a_self_signed_certificate_is_tls(tmp_path: Path) -> None:
    with ScriptedServer([text_reply("hello")], tls=build_self_signed_context(tmp_path / "server.pem")) as provider:
        assert find_code(send(provider.endpoint())) == "tls"
        assert provider.seen == []


@pytest.mark.parametrize("base_url", ["nonsense", "ftp://127.0.0.1/x", "http://[::bad", "http://127.0.0.1:99999", ""])
def test_send_to_an_invalid_address_is_not_sendable(base_url: str) -> None:
    assert find_code(send(Endpoint(base_url, "m"))) == "not_sendable"


@pytest.mark.parametrize("key", ["line\nbreak-in-the-key", "schlüssel-öffner", "nul\x00in-the-key"])
def test_send_key_that_fits_no_header_is_not_sendable_and_hidden(provider: ScriptedServer, key: str) -> None:
    exchange = send(provider.endpoint(key=key))
    error = exchange.find_error()
    assert error is not None
    assert error.code == "not_sendable"
    assert key not in error.message
    assert provider.seen == []


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (ScriptedReply(raw=b"", ending=ConnectionEnd.CLOSE), "disconnected"),
        (ScriptedReply(raw=b"", ending=ConnectionEnd.RESET), "connection_reset"),
        (ScriptedReply(declared=100, ending=ConnectionEnd.RESET), "connection_reset"),
        (ScriptedReply(body=b'{"choices": [', declared=100, ending=ConnectionEnd.CLOSE), "answer_cut"),
        (
            ScriptedReply(body=[b'{"choices": [', b" "], declared=100, pause=0.05, ending=ConnectionEnd.RESET),
            "answer_cut",
        ),
        (ScriptedReply(raw=b"SSH-2.0-OpenSSH_9.2\r\n", ending=ConnectionEnd.CLOSE), "not_http"),
        (ScriptedReply(raw=b"HTTP/1.1 abc\r\n\r\n", ending=ConnectionEnd.CLOSE), "not_http"),
        (
            ScriptedReply(raw=b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000 + b"\r\n\r\n", ending=ConnectionEnd.CLOSE),
            "not_http",
        ),
        (
            ScriptedReply(
                raw=b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", ending=ConnectionEnd.CLOSE
            ),
            "not_http",
        ),
    ],
)
def test_send_broken_answer_has_its_error_code(provider: ScriptedServer, answer: ScriptedReply, code: str) -> None:
    provider.set_script(answer)
    assert find_code(send(provider.endpoint())) == code


def test_send_silence_before_the_first_byte_is_read_timeout(provider: ScriptedServer) -> None:
    provider.set_script(ScriptedReply(raw=b"", ending=ConnectionEnd.HANG))
    exchange = send(provider.endpoint(timeouts=Timeouts(read=0.2)))
    assert isinstance(exchange.exception, httpx.ReadTimeout)
    assert find_code(exchange) == "read_timeout"


def test_send_silence_within_the_body_is_answer_cut_and_keeps_the_part(provider: ScriptedServer) -> None:
    provider.set_script(ScriptedReply(body=b'{"choices"', declared=100, ending=ConnectionEnd.HANG))
    exchange = send(provider.endpoint(timeouts=Timeouts(read=0.2)))
    assert find_code(exchange) == "answer_cut"
    assert exchange.body == b'{"choices"'


def test_send_to_a_server_that_accepts_nothing_is_connect_timeout() -> None:
    with socket.socket() as full_listener:
        full_listener.bind(("127.0.0.1", 0))
        full_listener.listen(0)
        port = full_listener.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        exchange = send(Endpoint(f"http://127.0.0.1:{port}", "m", timeouts=Timeouts(connect=0.3)))
        for filler in fillers:
            filler.close()
    assert find_code(exchange) == "connect_timeout"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_send_refuses_a_redirect_and_does_not_follow_it(provider: ScriptedServer, status: int) -> None:
    provider.set_script(ScriptedReply(status, {"location": f"{provider.base_url}/elsewhere"}), text_reply("stolen"))
    exchange = send(provider.endpoint(key="sk-secret-1234"))
    assert find_code(exchange) == "redirect_refused"
    assert len(provider.seen) == 1


def test_send_keeps_no_cookies(provider: ScriptedServer) -> None:
    provider.set_script(ScriptedReply(200, {"set-cookie": "a=b"}, b"{}"), text_reply("two"))

    async def twice() -> None:
        async with HttpClient() as client:
            for _ in range(2):
                await client.send(client.build_exchange(provider.endpoint(), PATH, b"{}"))

    asyncio.run(twice())
    assert "cookie" not in provider.seen[1].headers


def test_send_joins_repeated_headers_and_keeps_any_byte(provider: ScriptedServer) -> None:
    provider.set_script(ScriptedReply(raw=b"HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: \xe9\r\ncontent-length: 2\r\n\r\n{}"))
    assert send(provider.endpoint()).response_headers["x-a"] == "1, \xe9"


def test_send_times_chunks_that_add_up_to_the_body(provider: ScriptedServer) -> None:
    provider.set_script(ScriptedReply(body=[b'{"a": ', b"1}"], declared=8, pause=0.05))
    exchange = send(provider.endpoint())
    assert [size for _, size in exchange.chunks] == [6, 2]
    assert exchange.chunks[0][0] <= exchange.chunks[1][0]
    assert list(exchange.iter_chunks()) == [b'{"a": ', b"1}"]


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(b'{"a": 1}', mtime=0)),
        ("deflate", zlib.compress(b'{"a": 1}')),
        ("deflate", zlib.compress(b'{"a": 1}', wbits=-zlib.MAX_WBITS)),
        ("gzip", gzip.compress(b'{"a"', mtime=0) + gzip.compress(b": 1}", mtime=0)),
        ("gzip", b"".join(gzip.compress(b'{"a": 1}'[index : index + 1], mtime=0) for index in range(8)) + b"\0\0\0"),
        ("deflate", zlib.compress(b'{"a": 1}') + gzip.compress(b"ignored", mtime=0)),
    ],
)
def test_send_decompresses_the_body_and_counts_its_wire_size(
    provider: ScriptedServer, coding: str, body: bytes
) -> None:
    provider.set_script(ScriptedReply(200, {"content-encoding": coding}, body))
    exchange = send(provider.endpoint())
    assert exchange.body == b'{"a": 1}'
    assert exchange.body_bytes == len(body)
    assert exchange.response_headers["content-encoding"] == coding


def test_send_reads_no_more_than_the_limit_after_a_gzip_body(provider: ScriptedServer) -> None:
    body = itertools.chain([gzip.compress(b"{}")], itertools.repeat(b"x" * 1024**2, 64))
    provider.set_script(ScriptedReply(200, {"content-encoding": "gzip"}, body, declared=GIGABYTE))
    exchange = send(provider.endpoint())
    assert (exchange.is_truncated, exchange.body) == (True, b"{}")
    assert MAX_BODY_BYTES < exchange.body_bytes < 2 * MAX_BODY_BYTES


@pytest.mark.parametrize(("coding", "body"), [("br", b"\x0b\x02\x80"), ("gzip", b"this is no gzip")])
def test_send_unknown_or_wrong_coding_is_encoding_unreadable(
    provider: ScriptedServer, coding: str, body: bytes
) -> None:
    provider.set_script(ScriptedReply(200, {"content-encoding": coding}, body))
    assert find_code(send(provider.endpoint())) == "encoding_unreadable"


def test_send_decompresses_a_gzip_bomb_only_up_to_the_limit(provider: ScriptedServer) -> None:
    compressor = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    bomb = b"".join(compressor.compress(b"\0" * 1024**2) for _ in range(200)) + compressor.flush()
    provider.set_script(ScriptedReply(200, {"content-encoding": "gzip"}, bomb))
    exchange = send(provider.endpoint())
    assert (exchange.is_truncated, len(exchange.body), find_code(exchange)) == (True, MAX_BODY_BYTES, "body_too_large")


def test_send_truncates_a_gigabyte_at_the_limit_and_closes(provider: ScriptedServer) -> None:
    sent = []

    def flood() -> Iterator[bytes]:
        for _ in range(1024):
            sent.append(1)
            yield b"x" * 1024**2

    provider.set_script(ScriptedReply(body=flood(), declared=GIGABYTE))
    exchange = send(provider.endpoint())
    assert (exchange.is_truncated, len(exchange.body), find_code(exchange)) == (True, MAX_BODY_BYTES, "body_too_large")
    assert len(sent) < 200


def test_send_error_status_with_an_endless_body_keeps_its_status(provider: ScriptedServer) -> None:
    provider.set_script(ScriptedReply(503, {}, (b"x" * 1024**2 for _ in range(1024)), declared=GIGABYTE))
    assert find_code(send(provider.endpoint())) == "unavailable"


def test_send_body_in_many_chunks_keeps_a_bounded_number_of_times() -> None:
    class ByteChunks(httpx.AsyncByteStream):
        async def __aiter__(self):  # type: ignore[no-untyped-def]  # noqa: ANN204
            for _ in range(MAX_TIMED_CHUNKS + 500):
                yield b"x"

    async def once() -> Exchange:
        transport = httpx.MockTransport(lambda request: httpx.Response(200, stream=ByteChunks()))
        async with HttpClient(transport) as client:
            exchange = client.build_exchange(Endpoint("http://scripted", "m"), PATH, b"{}")
            await client.send(exchange)
            return exchange

    exchange = asyncio.run(once())
    assert len(exchange.chunks) == MAX_TIMED_CHUNKS
    assert sum(size for _, size in exchange.chunks) == MAX_TIMED_CHUNKS + 500


def test_send_cancelled_in_flight_keeps_what_arrived(provider: ScriptedServer) -> None:
    provider.set_script(ScriptedReply(body=b'{"choices"', declared=100, ending=ConnectionEnd.HANG))

    async def cancel_in_flight() -> Exchange:
        async with HttpClient() as client:
            exchange = client.build_exchange(provider.endpoint(), PATH, b"{}")
            task = asyncio.create_task(client.send(exchange))
            while not exchange.chunks:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return exchange

    exchange = asyncio.run(cancel_in_flight())
    assert (exchange.status, exchange.body) == (200, b'{"choices"')
    assert exchange.ended_at > exchange.started_at


def test_send_masks_a_secret_wherever_it_appears(provider: ScriptedServer) -> None:
    key = "sk-secret-1234/x"
    leak = {"error": {"message": f"bad key {key}"}, "seen": "sk\\u002dsecret"}
    escaped = b'{"error": {"message": "bad key sk-\\u0073ecret-1234\\/x"}}'
    provider.set_script(
        json_reply(leak, status=401, headers={"x-echo": f"Bearer {key}"}), ScriptedReply(401, {}, escaped)
    )
    endpoint = provider.endpoint(key=key, headers={"x-api-key": "another-secret-9"})
    sent = f'{{"prompt": "{key}", "other": "another-secret-9"}}'.encode()
    for _ in range(2):
        exchange = send(endpoint, sent)
        visible = repr(
            (exchange.template, exchange.request_body, exchange.response_headers, exchange.body, exchange.find_error())
        )
        assert key not in visible
        assert "another-secret-9" not in visible
        assert "ecret-1234" not in visible
        assert len(exchange.request_body) == len(sent)
        assert exchange.is_masked
        assert find_code(exchange) == "authentication"
    assert exchange.body == b'{"error": {"message": "bad key ' + b"*" * 22 + b'"}}'
    assert provider.seen[0].body == sent


def test_send_masks_a_large_body_outside_the_event_loop(provider: ScriptedServer) -> None:
    provider.set_script(
        ScriptedReply(200, {}, b'{"a": "%s"}' % (b"sk-secret-1234 " * (MIN_THREAD_MASKING_BYTES // 15 + 1)))
    )
    called_names: set[str] = set()
    threading.setprofile(lambda frame, event, argument: called_names.add(frame.f_code.co_name))
    try:
        exchange = send(provider.endpoint(key="sk-secret-1234"))
    finally:
        threading.setprofile(None)
    assert "mask_body" in called_names
    assert exchange.is_masked
    assert b"sk-secret" not in exchange.body
    assert len(exchange.body) == exchange.body_bytes


def test_mask_large_body_survives_cancellation(provider: ScriptedServer) -> None:
    provider.set_script(ScriptedReply(200, {}, b'{"a": "%s"}' % (b"sk-secret-1234 " * MIN_THREAD_MASKING_BYTES)))

    async def cancel_masking() -> Exchange:
        async with HttpClient() as client:
            exchange = client.build_exchange(provider.endpoint(key="sk-secret-1234"), PATH, b"{}")
            await client.send(exchange)
            exchange.finish()
            task = asyncio.create_task(exchange.mask_large_body())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return exchange

    exchange = asyncio.run(cancel_masking())
    assert exchange.is_masked
    assert b"sk-secret" not in exchange.body
