"""HTTP client through which all requests to providers are sent."""

import time
from collections.abc import Callable
from types import TracebackType

import httpx

from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.aiohttp_transport import AiohttpTransport
from toolbench.providers.http.exchange import Exchange
from toolbench.providers.http.request_template import build_request_template


class HttpClient:
    """HTTP client with one session, bound to one event loop.

    All trials of a worker session share one client. Close a client after use. `clock` returns seconds.
    """

    def __init__(
        self, transport: httpx.AsyncBaseTransport | None = None, *, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._transport = transport or AiohttpTransport()
        self._clock = clock

    def build_exchange(self, endpoint: Endpoint, path: str, body: bytes | None = None) -> Exchange:
        """Build an exchange without sending its request. Its times count from now.

        The exchange is a POST of `body`, or a GET if `body` is None.
        """
        return Exchange(build_request_template(endpoint, path), body, self._clock)

    async def send(self, exchange: Exchange) -> None:
        """Send the request and read the response into `exchange`.

        The exception is stored in `exchange.exception` if the network fails, the address or a header cannot be sent, or
        the body cannot be decompressed. On cancellation, `exchange` keeps the part of the response that has arrived.

        Raises:
            asyncio.CancelledError: this task was cancelled.
            Exception: any other error of the transport or of `exchange.on_chunk`.
        """
        try:
            response = await self._transport.handle_async_request(exchange.build_request())
            await _receive(exchange, response)
        except httpx.HTTPError as error:
            _drop_tracebacks(error)
            exchange.exception = error
        except (httpx.InvalidURL, ValueError) as error:
            exchange.exception = httpx.LocalProtocolError(str(error))
        finally:
            exchange.finish()
            await exchange.mask_large_body()

    async def aclose(self) -> None:
        """Close the transport and its connections."""
        await self._transport.aclose()

    async def __aenter__(self) -> "HttpClient":
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


async def _receive(exchange: Exchange, response: httpx.Response) -> None:
    stream = response.stream
    assert isinstance(stream, httpx.AsyncByteStream)
    try:
        exchange.start_response(response)
        async for chunk in stream:
            if not exchange.add_chunk(chunk):
                break
    finally:
        await stream.aclose()


def _drop_tracebacks(error: BaseException | None) -> None:
    """Drop the tracebacks of an exception and of the chain of its causes, or contexts where there is no cause.

    Their frames refer to the exchange, which refers to the exception: the bodies of a trial would stay in memory until
    a garbage collection.
    """
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
