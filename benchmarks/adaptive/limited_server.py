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
from benchmarks.slow_server import ClientConnection, serve
from benchmarks.trial_answers import choose_answer

_HEAD = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_REJECTION = b'{"error": {"message": "Too many requests"}}'


class LimitedConnection(ClientConnection):
    """Connection on which requests beyond the hidden limits are rejected."""

    def __init__(self, seconds: float, limits: HiddenLimits) -> None:
        super().__init__(seconds)
        self._limits = limits

    def answer(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET"):
            self._write(b"200 OK", json.dumps(self._limits.describe()).encode())
        elif self._limits.enter(time.monotonic()):
            delay = self._seconds * random.uniform(0.5, 1.5)
            asyncio.get_running_loop().call_later(delay, partial(self._finish, choose_answer(body)))
        else:
            self._write(b"429 Too Many Requests", _REJECTION)

    def _finish(self, body: bytes) -> None:
        self._limits.leave()
        self._write(b"200 OK", body)

    def _write(self, status: bytes, body: bytes) -> None:
        self._transport.write(_HEAD % (status, len(body)) + body)


if __name__ == "__main__":
    seconds, window = float(sys.argv[1]), cast("WindowKind", sys.argv[4])
    hidden_limits = HiddenLimits(int(sys.argv[2]), int(sys.argv[3]), window)
    asyncio.run(serve(lambda: LimitedConnection(seconds, hidden_limits)))
