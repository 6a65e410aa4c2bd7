"""The one door to the network."""

import time
from collections.abc import Callable
from types import TracebackType

import httpx

from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.aiohttp_transport import AiohttpTransport
from toolbench.providers.http.exchange import Exchange
from toolbench.providers.http.request_template import build_request_template


class HttpClient:
    """One HTTP session, shared by all trials of a shift and bound to one event loop; close it when the shift ends.
    `clock` gives seconds."""

    def __init__(
        self, transport: httpx.AsyncBaseTransport | None = None, *, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._transport = transport or AiohttpTransport()
        self._clock = clock

    def open(self, endpoint: Endpoint, path: str, body: bytes | None = None) -> Exchange:
        """An exchange whose clock runs from now and that has sent nothing yet: a POST of `body`, or a GET without."""
        return Exchange(build_request_template(endpoint, path), body, self._clock)

    async def send(self, exchange: Exchange) -> None:
        """Sends and receives, filling `exchange`. The world's failures end up in `exchange.exception`; being
        cancelled leaves there what had come."""
        try:
            response = await self._transport.handle_async_request(exchange.request())
            await _receive(exchange, response)
        except httpx.HTTPError as error:
            exchange.exception = error
        except (httpx.InvalidURL, ValueError) as error:
            exchange.exception = httpx.LocalProtocolError(str(error))
        finally:
            exchange.finish()
            await exchange.mask_large_body()

    async def aclose(self) -> None:
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
