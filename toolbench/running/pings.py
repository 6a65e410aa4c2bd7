"""Check whether a local server still answers, without waiting for it."""

import socket
from contextlib import suppress
from urllib.parse import urlsplit

PING_INTERVAL_SECONDS = 5.0
_REQUEST = b"GET /health HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"


class HealthPing:
    """Repeated health requests to a server on this machine, at most one at a time."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = parts.hostname or "", parts.port or 80
        self._socket: socket.socket | None = None
        self._sent = False
        self._due_at = 0.0

    def has_answered(self, now: float) -> bool:
        """Send a request if one is due; return whether a non-empty answer was received in this call."""
        if self._socket is None:
            if now < self._due_at:
                return False
            self._connect(now)
        try:
            return self._advance()
        except BlockingIOError:
            return False
        except OSError:
            self.close()
            return False

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connect(self, now: float) -> None:
        self._due_at, self._sent = now + PING_INTERVAL_SECONDS, False
        self._socket = socket.socket()
        self._socket.setblocking(False)
        with suppress(OSError):  # EINPROGRESS; a real error occurs again in _advance
            self._socket.connect(self._address)

    def _advance(self) -> bool:
        assert self._socket is not None
        if not self._sent:
            self._socket.send(_REQUEST)
            self._sent = True
        answer = self._socket.recv(1024)
        self.close()
        return bool(answer)


def can_be_pinged(url: str) -> bool:
    """Return whether the URL has an address of this machine; looking up a name could take long."""
    with suppress(ValueError):
        return urlsplit(url).hostname == "127.0.0.1" and urlsplit(url).port is not None
    return False
