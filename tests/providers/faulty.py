"""TCP server that breaks its answers off, and the table of points at which an answer can break off."""

import json
import socket
import socketserver
import struct
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Any, cast

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 seconds
ENDINGS = ("reset", "close")  # by RST, by FIN

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
_LENGTH = b"content-length: 1000\r\n\r\n"
_CHUNKED = b"transfer-encoding: chunked\r\n\r\n"
_NO_LENGTH = b"connection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Point:
    """One point at which an answer breaks off, with the error codes that are expected.

    Attributes:
        sent: all bytes of a whole answer that are sent.
        streamed: the same for a streamed answer.
        reset: error code after a reset (RST).
        close: error code after an orderly close (FIN).
    """

    name: str
    sent: bytes
    streamed: bytes
    reset: str
    close: str

    def code(self, ending: str) -> str:
        return self.reset if ending == "reset" else self.close


def _framed(framing: bytes, whole: bytes, streamed: bytes) -> tuple[bytes, bytes]:
    """Return a whole and a streamed answer with this much body."""
    bodies = (b"%x\r\n%b\r\n" % (len(body), body) if framing is _CHUNKED else body for body in (whole, streamed))
    first, second = (_HEAD + framing + body for body in bodies)
    return first, second


_EVENT = json.dumps({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}).encode()
_TOKEN = json.dumps({"choices": [{"index": 0, "delta": {"content": "Do"}}]}).encode()
_BLANK = (b" \n\n", b": keep-alive\n\n")
_OPENED = (b"\n", b"data: " + _EVENT + b"\n\n")
_BEGUN = (b'{"choices": [{"mess', b"data: " + _TOKEN[:-20])
_HALF = (b'{"choices": [{"message": {"content": "Do', b"data: " + _EVENT + b"\n\ndata: " + _TOKEN + b"\n\ndata: {")

RESET, GONE, CUT, NO_ANSWER = "connection_reset", "disconnected", "answer_cut", "not_an_answer"
POINTS = (
    Point("nothing", b"", b"", RESET, GONE),
    Point("half-status-line", b"HTTP/1.1 2", b"HTTP/1.1 2", RESET, GONE),
    Point("status-line", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n", RESET, GONE),
    Point("half-headers", _HEAD, _HEAD, RESET, GONE),
    Point("interim-answer", *(b"HTTP/1.1 100 Continue\r\n\r\n",) * 2, RESET, GONE),
    Point("headers-with-length", _HEAD + _LENGTH, _HEAD + _LENGTH, RESET, RESET),
    Point("headers-of-chunks", _HEAD + _CHUNKED, _HEAD + _CHUNKED, RESET, RESET),
    Point("headers-without-length", _HEAD + _NO_LENGTH, _HEAD + _NO_LENGTH, RESET, NO_ANSWER),
    Point("blank-with-length", *_framed(_LENGTH, *_BLANK), RESET, RESET),
    Point("blank-in-chunks", *_framed(_CHUNKED, *_BLANK), RESET, RESET),
    Point("blank-without-length", *_framed(_NO_LENGTH, *_BLANK), RESET, NO_ANSWER),
    Point("opened-with-length", *_framed(_LENGTH, *_OPENED), RESET, RESET),
    Point("opened-in-chunks", *_framed(_CHUNKED, *_OPENED), RESET, RESET),
    Point("begun-with-length", *_framed(_LENGTH, *_BEGUN), CUT, CUT),
    Point("begun-in-chunks", *_framed(_CHUNKED, *_BEGUN), CUT, CUT),
    Point("half-with-length", *_framed(_LENGTH, *_HALF), CUT, CUT),
    Point("half-in-chunks", *_framed(_CHUNKED, *_HALF), CUT, CUT),
    Point("half-without-length", *_framed(_NO_LENGTH, *_HALF), CUT, ""),
    Point("ssh-banner", *(b"SSH-2.0-OpenSSH_9.2\r\n",) * 2, "not_http", "not_http"),
    Point("tls-alert", *(b"\x15\x03\x01\x00\x02\x02\x28",) * 2, "not_http", "not_http"),
)


class FaultyServer:
    """Server on 127.0.0.1 that breaks every answer off. The request's model names point and ending: `nothing reset`."""

    def __init__(self) -> None:
        self.requests = 0
        self._server = _Server(("127.0.0.1", 0), _Connection)
        self._server.faulty = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "FaultyServer":
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 256
    faulty: FaultyServer

    def shutdown_request(self, request: Any) -> None:
        """Close without the half-close that would send FIN before the reset."""
        self.close_request(request)


class _Connection(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self) -> None:
        length = 0
        while line := self.rfile.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        request = json.loads(self.rfile.read(length))
        cast(_Server, self.server).faulty.requests += 1
        name, _, ending = request["model"].partition(" ")
        point = next(point for point in POINTS if point.name == name)
        self.wfile.write(point.streamed if request.get("stream") else point.sent)
        if ending == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
