"""Transport for httpx that sends requests with aiohttp.

It follows no redirects, keeps no cookies and decompresses nothing: bodies arrive as the server sent them. A POST is
never repeated; aiohttp repeats a GET once if its connection is lost before a response. The transport reads two
extensions of a request: `timeout`, in httpx's form (`connect` and `read` in seconds, None for no limit), and `network`,
a `NetworkAccess`.
"""

import functools
import io
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import httpx
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

from toolbench.providers.endpoint import DIRECT, NetworkAccess
from toolbench.providers.http.network_access import NetworkSettingsError, build_proxy_arguments, build_ssl_context
from toolbench.providers.http.network_errors import describe_lost_connection, describe_network_error

# Common servers close an idle connection after five seconds; a request sent at that moment would fail.
KEEPALIVE_SECONDS = 4.0
DNS_CACHE_SECONDS = 60
MIN_STREAMED_BODY_BYTES = 2**20


class DnsError(httpx.ConnectError):
    """Failure to resolve the host's name to an address."""


class TlsError(httpx.ConnectError):
    """Failure to set up TLS, for instance because of a wrong certificate or of a server without TLS."""


class ServerDisconnectedError(httpx.RemoteProtocolError):
    """Failure of a request whose connection the server closed before it sent a response."""


# The first matching row counts, so subclasses come before their base classes.
_TRANSLATIONS: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout),
    (aiohttp.SocketTimeoutError, httpx.ReadTimeout),
    (aiohttp.ServerTimeoutError, httpx.ReadTimeout),
    (aiohttp.ClientConnectorDNSError, DnsError),
    (aiohttp.ClientSSLError, TlsError),
    (aiohttp.ServerFingerprintMismatch, TlsError),
    (ssl.SSLError, TlsError),
    (aiohttp.ClientConnectorError, httpx.ConnectError),
    (aiohttp.ServerDisconnectedError, ServerDisconnectedError),
    (aiohttp.ClientPayloadError, httpx.ReadError),
    (aiohttp.InvalidURL, httpx.UnsupportedProtocol),
    (aiohttp.NonHttpUrlClientError, httpx.UnsupportedProtocol),
    (aiohttp.ClientResponseError, httpx.RemoteProtocolError),
    (aiohttp.ClientConnectionError, httpx.ReadError),
    (aiohttp.ClientError, httpx.RemoteProtocolError),
    (OSError, httpx.ReadError),
    (ValueError, httpx.LocalProtocolError),
)
_TRANSPORT_ERRORS = (aiohttp.ClientError, OSError, ValueError)


def _translate_error(error: Exception, network: NetworkAccess = DIRECT) -> httpx.TransportError:
    """Return httpx's counterpart of one of `_TRANSPORT_ERRORS`.

    The message names the setting at fault if `describe_network_error` recognises the error.
    """
    if problem := describe_network_error(error, network):
        return (TlsError if problem.is_tls else httpx.ConnectError)(problem.sentence)
    target = next(target for source, target in _TRANSLATIONS if isinstance(error, source))
    return target(str(error) or type(error).__name__)


def _add_cause(error: httpx.TransportError, network: NetworkAccess) -> httpx.TransportError:
    """Return the error of a request without a response, with a possible cause if the connection was lost."""
    cause = describe_lost_connection(network) if isinstance(error, httpx.ReadError | ServerDisconnectedError) else ""
    return type(error)(f"{error}.{cause}") if cause else error


def is_connection_refused(error: Exception | None) -> bool:
    """Return whether `error` says that no program listens at the address, or at that of the proxy.

    Args:
        error: an exception of this transport, or None.
    """
    cause = error.__cause__ if error is not None else None
    return isinstance(cause, aiohttp.ClientConnectorError) and isinstance(cause.os_error, ConnectionRefusedError)


@functools.lru_cache(maxsize=32)
def _build_timeout(connect: float | None, read: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, connect=connect, sock_read=read)


class _Response(aiohttp.ClientResponse):
    """Response that keeps its connection's protocol object, which stores why the connection ended."""

    _http_protocol: ResponseHandler | None = None

    async def start(self, connection: Connection) -> "_Response":
        """Read the head of the response and keep the protocol object of the connection."""
        self._http_protocol = connection.protocol
        await super().start(connection)
        return self

    def find_reset(self) -> BaseException | None:
        """Return the error that ended a body without a declared length, or None.

        A body without a declared length ends with its connection, and aiohttp accepts a reset as such an end.
        """
        headers = self.headers
        has_length = headers.get("content-length") or "chunked" in headers.get("transfer-encoding", "").lower()
        error = None if has_length or self._http_protocol is None else self._http_protocol.exception()
        return error if isinstance(error, OSError) else None


class _ResponseBody(httpx.AsyncByteStream):
    """Body of a response as a stream of chunks; closing it early closes the connection."""

    def __init__(self, response: _Response, network: NetworkAccess) -> None:
        self._response = response
        self._network = network

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._response.content.readany()
        except _TRANSPORT_ERRORS as error:
            raise _translate_error(error, self._network) from error
        if chunk:
            return chunk
        if reset := self._response.find_reset():
            raise httpx.ReadError(str(reset)) from reset
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Close the response, and its connection unless the whole body was read."""
        self._response.close()


def _wrap_large_body(data: bytes) -> bytes | io.BytesIO | None:
    """Return a body of `MIN_STREAMED_BODY_BYTES` or more as a stream, an empty one as None, any other unchanged.

    aiohttp sends a stream in parts. Sending a large body at once would block the event loop.
    """
    return io.BytesIO(data) if len(data) >= MIN_STREAMED_BODY_BYTES else data or None


def _build_network_arguments(network: NetworkAccess, headers: list[tuple[str, str]], *, tunnel: bool) -> dict[str, Any]:
    """Return the arguments of aiohttp's `request` that override the session's; {} for a direct connection.

    The login of a proxy without a tunnel is added to `headers`.

    Raises:
        NetworkSettingsError: a certificate or key cannot be read.
    """
    if network == DIRECT:
        return {}
    return {"ssl": build_ssl_context(network), **build_proxy_arguments(network, headers, tunnel=tunnel)}


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Transport over one aiohttp session, bound to one event loop.

    The session is opened with the first request.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request and return as soon as the head of the response has arrived.

        Raises:
            httpx.TransportError: the request could not be sent or no response head arrived.
        """
        timeout, network = request.extensions.get("timeout", {}), request.extensions.get("network", DIRECT)
        headers = [(name.decode(), value.decode()) for name, value in request.headers.raw]
        try:
            response = await self._get_session().request(
                request.method,
                str(request.url),
                headers=headers,
                data=_wrap_large_body(await request.aread()),
                allow_redirects=False,
                timeout=_build_timeout(timeout.get("connect"), timeout.get("read")),
                **_build_network_arguments(network, headers, tunnel=request.url.scheme == "https"),
            )
        except NetworkSettingsError as error:
            raise TlsError(str(error)) from error
        except _TRANSPORT_ERRORS as error:
            raise _add_cause(_translate_error(error, network), network) from error
        assert isinstance(response, _Response)
        return httpx.Response(
            response.status, headers=response.raw_headers, stream=_ResponseBody(response, network), request=request
        )

    def _get_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0,
                    ttl_dns_cache=DNS_CACHE_SECONDS,
                    keepalive_timeout=KEEPALIVE_SECONDS,
                    ssl=build_ssl_context(DIRECT),
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                response_class=_Response,
                auto_decompress=False,
            )
        return self._session

    async def aclose(self) -> None:
        """Close the session; a later request opens a new one."""
        if self._session is not None:
            await self._session.close()
            self._session = None
