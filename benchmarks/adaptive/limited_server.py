"""The slow server of the loop benchmark with hidden limits, in a process of its own.

`python -m benchmarks.adaptive.limited_server SECONDS IN_FLIGHT PER_MINUTE WINDOW` prints its port. A rejection is an
answer 429 that says nothing about the limits. GET / answers with the counts so far, as JSON.
"""

import asyncio
import json
import random
import sys
import time
from functools import partial
from typing import cast

from benchmarks.adaptive.hidden_limits import HiddenLimits, WindowKind
from benchmarks.trial_answers import choose_answer

_HEAD = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_REJECTION = b'{"error": {"message": "Too many requests"}}'


class LimitedConnection(asyncio.Protocol):
    """Connection of one client, which sends one request after another."""

    def __init__(self, seconds: float, limits: HiddenLimits) -> None:
        self._seconds, self._limits = seconds, limits
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = bytes(self._received).partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0):
            return
        self._received.clear()
        if head.startswith(b"GET"):
            self._write(b"200 OK", json.dumps(self._limits.describe()).encode())
        elif self._limits.enter(time.monotonic()):
            delay = self._seconds * random.uniform(0.5, 1.5)
            asyncio.get_running_loop().call_later(delay, partial(self._answer, choose_answer(body)))
        else:
            self._write(b"429 Too Many Requests", _REJECTION)

    def _answer(self, body: bytes) -> None:
        self._limits.leave()
        self._write(b"200 OK", body)

    def _write(self, status: bytes, body: bytes) -> None:
        self._transport.write(_HEAD % (status, len(body)) + body)


async def serve(seconds: float, limits: HiddenLimits) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: LimitedConnection(seconds, limits), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    window = cast("WindowKind", sys.argv[4])
    asyncio.run(serve(float(sys.argv[1]), HiddenLimits(int(sys.argv[2]), int(sys.argv[3]), window)))
