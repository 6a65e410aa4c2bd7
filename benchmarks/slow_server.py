"""Chat endpoint that takes a fixed time for every answer and hardly any CPU.

`python -m benchmarks.slow_server SECONDS` prints its port and serves until it is terminated. It gives the answers of
the benchmark's trial.
"""

import asyncio
import sys

from benchmarks.trial_answers import choose_answer

RESPONSE_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\nserver: bench\r\n"
    b"x-request-id: 0123456789abcdef\r\nx-ratelimit-remaining-requests: 999\r\ncontent-length: %d\r\n\r\n"
)


class SlowConnection(asyncio.Protocol):
    """Connection of one client, which sends one request after another."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = bytes(self._received).partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if len(body) >= length:
            self._received.clear()
            answer = choose_answer(body)
            response = RESPONSE_HEAD % len(answer) + answer
            asyncio.get_running_loop().call_later(self._seconds, self._transport.write, response)


async def serve(seconds: float) -> None:
    """Print the port and serve."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SlowConnection(seconds), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
