"""Tests of proxies and certificates on real sockets: what works, and which setting an error names."""

import asyncio
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.providers.company_network import Authority, ConnectProxy
from toolbench.engine.events import ExchangeError
from toolbench.providers.endpoint import DIRECT, Endpoint, NetworkAccess
from toolbench.providers.http.client import HttpClient
from toolbench.providers.http.exchange import Exchange
from toolbench.providers.http.network_access import (
    NetworkSettingsError,
    check_certificates,
    check_client_certificate,
    check_private_key,
    split_proxy,
)
from toolbench.providers.scripted_server import ScriptedServer, text_reply

LOGIN = "ana:pass:wörd-1234"


@pytest.fixture(scope="module")
def company() -> Authority:
    return Authority()


@pytest.fixture
def server(company: Authority, tmp_path: Path) -> Iterator[ScriptedServer]:
    """Yield a server with a certificate of the company's authority."""
    with ScriptedServer([text_reply("hello")] * 3, tls=company.build_server_context(tmp_path)) as started:
        yield started


@pytest.fixture
def strict_server(company: Authority, tmp_path: Path) -> Iterator[ScriptedServer]:
    """Yield such a server that also requires a client certificate of that authority."""
    context = company.build_server_context(tmp_path, clients=company)
    with ScriptedServer([text_reply("hello")] * 3, tls=context) as started:
        yield started


def send(endpoint: Endpoint, network: NetworkAccess) -> Exchange:
    async def once() -> Exchange:
        async with HttpClient() as client:
            exchange = client.build_exchange(replace(endpoint, network=network), "chat/completions", b"{}")
            await client.send(exchange)
            return exchange

    return asyncio.run(once())


def send_failing(endpoint: Endpoint, network: NetworkAccess) -> ExchangeError:
    error = send(endpoint, network).find_error()
    assert error is not None
    return error


def test_send_to_server_of_a_company_ca_needs_that_ca(server: ScriptedServer, company: Authority) -> None:
    error = send_failing(server.endpoint(), DIRECT)
    assert (error.code, error.message.partition(",")[0]) == ("tls", "CA file: none is entered")
    error = send_failing(server.endpoint(), NetworkAccess(ca=Authority("Other CA").pem))
    assert (error.code, error.message.partition(" nor ")[0]) == ("tls", "CA file: neither a CA in it")
    assert send(server.endpoint(), NetworkAccess(ca=company.pem)).status == 200
    assert send(server.endpoint(), NetworkAccess(ca=Authority("Other CA").pem + company.pem)).status == 200


@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        ({"host": "127.0.0.2"}, "Server certificate: it is for another host"),
        ({"days": -1}, "Server certificate: it is not valid now"),
        ({"purpose": ExtendedKeyUsageOID.CLIENT_AUTH}, "Server certificate: it is refused"),
    ],
)
def test_send_to_wrong_server_certificate_names_no_setting(
    company: Authority, tmp_path: Path, certificate: dict[str, Any], words: str
) -> None:
    with ScriptedServer([], tls=company.build_server_context(tmp_path, **certificate)) as server:
        error = send_failing(server.endpoint(), NetworkAccess(ca=company.pem))
    assert error.code == "tls"
    assert error.message.startswith(words)


def test_send_with_client_certificate_is_accepted_by_strict_server(
    strict_server: ScriptedServer, company: Authority
) -> None:
    certificate, key = company.issue()
    access = NetworkAccess(ca=company.pem, certificate=certificate, certificate_key=key)
    assert send(strict_server.endpoint(), access).status == 200


def test_send_missing_or_refused_client_certificate_is_named(strict_server: ScriptedServer, company: Authority) -> None:
    """The server's reset may come before its alert: the error then says that this may be the cause."""
    error = send_failing(strict_server.endpoint(), NetworkAccess(ca=company.pem))
    assert re.search(r"Client certificate: the server (requires|may require) one, and none is entered", error.message)
    certificate, key = Authority("Other CA").issue()
    error = send_failing(
        strict_server.endpoint(), NetworkAccess(ca=company.pem, certificate=certificate, certificate_key=key)
    )
    assert re.search(r"Client certificate: the server (refuses|may refuse) it", error.message)


def test_send_damaged_certificates_are_named(server: ScriptedServer, company: Authority) -> None:
    error = send_failing(
        server.endpoint(), NetworkAccess(ca="-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----")
    )
    assert (error.code, error.message.partition(":")[0]) == ("tls", "CA file")
    certificate, _ = company.issue()
    _, key = company.issue()
    error = send_failing(server.endpoint(), NetworkAccess(certificate=certificate, certificate_key=key))
    assert (error.code, error.message.partition(":")[0]) == ("tls", "Client certificate")


def test_send_through_proxy_reaches_a_server_with_tls(strict_server: ScriptedServer, company: Authority) -> None:
    certificate, key = company.issue()
    with ConnectProxy() as proxy:
        access = NetworkAccess(proxy.url, ca=company.pem, certificate=certificate, certificate_key=key)
        assert send(strict_server.endpoint(), access).status == 200
        assert proxy.seen == [f"CONNECT {strict_server.base_url.removeprefix('https://')} HTTP/1.1"]


def test_send_tls_error_behind_a_proxy_names_the_ca(server: ScriptedServer) -> None:
    with ConnectProxy() as proxy:
        assert send_failing(server.endpoint(), NetworkAccess(proxy.url)).message.startswith("CA file: none is entered")


def test_send_through_proxy_with_login_needs_that_login(server: ScriptedServer, company: Authority) -> None:
    with ConnectProxy(login=LOGIN) as proxy:
        access = NetworkAccess(proxy.url, LOGIN, company.pem)
        assert send(server.endpoint(), access).status == 200
        wrong = send_failing(server.endpoint(), replace(access, proxy_login="ana:wrong-password"))
        missing = send_failing(server.endpoint(), replace(access, proxy_login=""))
    assert wrong.message == f"Proxy: {proxy.url} refuses the user and password (HTTP 407)."
    assert missing.message == f"Proxy: {proxy.url} asks for a user and a password (HTTP 407)."


def test_send_proxy_that_refuses_or_is_down_is_named(server: ScriptedServer, company: Authority) -> None:
    with ConnectProxy(refusal="403 Forbidden") as proxy:
        error = send_failing(server.endpoint(), NetworkAccess(proxy.url, ca=company.pem))
    assert error.message == f"Proxy: {proxy.url} makes no connection to the server (HTTP 403)."
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # it does not listen
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        error = send_failing(server.endpoint(), NetworkAccess(url, ca=company.pem))
    assert error.code == "connection_refused"
    assert error.message.startswith(f"Proxy: {url} cannot be reached")


def test_send_plain_http_goes_to_the_proxy() -> None:
    with ConnectProxy(login=LOGIN) as proxy:
        exchange = send(Endpoint("http://somewhere.invalid", "m"), NetworkAccess(proxy.url, LOGIN))
    assert exchange.body == b'{"through": "the proxy"}'
    assert proxy.seen == ["POST http://somewhere.invalid/v1/chat/completions HTTP/1.1"]


def test_network_access_login_is_masked_in_answers_and_hidden_in_repr() -> None:
    access = NetworkAccess("http://proxy.test:3128", LOGIN, certificate_key="PRIVATE")
    assert "wörd" not in repr(access)
    assert "PRIVATE" not in repr(access)
    with ScriptedServer([text_reply("it is pass:wörd-1234")]) as provider, ConnectProxy(login=LOGIN) as proxy:
        tunnelled = send(provider.endpoint(), NetworkAccess("", LOGIN))
    assert proxy.seen == []
    assert "wörd".encode() not in tunnelled.body
    assert b"1234" not in tunnelled.body


@pytest.mark.parametrize(
    ("text", "address", "login"),
    [
        ("http://proxy.test:3128", "http://proxy.test:3128", ""),
        (" https://proxy.test/ ", "https://proxy.test", ""),
        ("http://ana:p%40ss@[::1]:8080", "http://[::1]:8080", "ana:p@ss"),
        ("http://ana@proxy.test", "http://proxy.test", "ana:"),
    ],
)
def test_split_proxy_returns_address_and_login(text: str, address: str, login: str) -> None:
    assert split_proxy(text) == (address, login)


@pytest.mark.parametrize(
    "text",
    ["proxy.test:3128", "socks5://proxy.test", "http://", "http://a:b@", "http://[x", "http://p:99999", "http://p/q"],
)
def test_split_proxy_refuses_other_text_without_quoting_it(text: str) -> None:
    with pytest.raises(NetworkSettingsError, match="A proxy is an address such as") as refused:
        split_proxy(text)
    assert "a:b" not in str(refused.value)


def test_check_certificates_and_keys_name_each_malformed_text(company: Authority) -> None:
    certificate, key = company.issue()
    _, other = company.issue()
    check_certificates(f"# company\n{company.pem}\n{certificate}")
    check_client_certificate(certificate, key)
    locked = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")
    )
    for text in ("", "x", key, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "\ud800"):
        with pytest.raises(NetworkSettingsError, match="No certificate in PEM"):
            check_certificates(text)
    for text in ("", "x", certificate, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "\ud800"):
        with pytest.raises(NetworkSettingsError, match="No private key in PEM"):
            check_private_key(text)
    with pytest.raises(NetworkSettingsError, match="has a password"):
        check_private_key(locked.decode())
    with pytest.raises(NetworkSettingsError, match="does not belong"):
        check_client_certificate(certificate, other)
