"""Chat endpoint that takes a fixed time for every answer and hardly any CPU.

`python -m benchmarks.slow_server SECONDS` prints its port and serves until it is terminated. It gives the answers of
the benchmark's trial.
"""

import asyncio
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchmarks.trial_answers import choose_answer

RESPONSE_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\nserver: bench\r\n"
    b"x-request-id: 0123456789abcdef\r\nx-ratelimit-remaining-requests: 999\r\ncontent-length: %d\r\n\r\n"
)


class ClientConnection(asyncio.Protocol, ABC):
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
            self.answer(head, body)

    @abstractmethod
    def answer(self, head: bytes, body: bytes) -> None:
        """Answer a request, now or later."""


class SlowConnection(ClientConnection):
    """Connection on which every answer takes the same time."""

    def answer(self, head: bytes, body: bytes) -> None:
        answer = choose_answer(body)
        response = RESPONSE_HEAD % len(answer) + answer
        asyncio.get_running_loop().call_later(self._seconds, self._transport.write, response)


async def serve(build_connection: Callable[[], ClientConnection]) -> None:
    """Print the port and serve."""
    server = await asyncio.get_running_loop().create_server(build_connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def run_printing_server(module: str, *arguments: object) -> Iterator[str]:
    """Run a module that prints the port of its server during the block, and yield the address."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.terminate()


if __name__ == "__main__":
    latency = float(sys.argv[1])
    asyncio.run(serve(lambda: SlowConnection(latency)))
