"""Health requests to local servers, sent without waiting for the answers."""

import ipaddress
import socket
from contextlib import suppress
from urllib.parse import urlsplit

PING_INTERVAL_SECONDS = 5.0
_REQUEST = b"GET /health HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"


class HealthPing:
    """Repeated health requests to a server on this machine, at most one at a time."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._is_sent = False
        self._due_at = 0.0

    def advance(self, now: float) -> bool:
        """Send a request if one is due, and return whether an answer of any status was received now.

        A request is due every `PING_INTERVAL_SECONDS`, once the previous one has ended.

        Args:
            now: seconds of a monotonic clock.
        """
        try:
            if self._socket is None:
                if now < self._due_at:
                    return False
                self._connect(now)
            return self._exchange()
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
        self._due_at, self._is_sent = now + PING_INTERVAL_SECONDS, False
        self._socket = socket.socket(socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET)
        self._socket.setblocking(False)
        with suppress(OSError):  # EINPROGRESS; any other error occurs again in _exchange
            self._socket.connect(self._address)

    def _exchange(self) -> bool:
        assert self._socket is not None
        if not self._is_sent:
            self._socket.send(_REQUEST)
            self._is_sent = True
        answer = self._socket.recv(1024)
        self.close()
        return bool(answer)


def find_ping_address(url: str) -> tuple[str, int] | None:
    """Return IP address and port at which a server can be pinged.

    A server that listens on all addresses is pinged at 127.0.0.1 or ::1.

    Args:
        url: URL of the server, such as `http://0.0.0.0:8001`.

    Returns:
        None if the URL has no port, or has a name in place of an IP address: the lookup of a name could block.
    """
    try:
        host, port = ipaddress.ip_address(urlsplit(url).hostname or ""), urlsplit(url).port
    except ValueError:
        return None
    if port is None:
        return None
    return ({4: "127.0.0.1", 6: "::1"}[host.version] if host.is_unspecified else str(host)), port
