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
CONNECTION_ENDS = ("reset", "close")  # by RST, by FIN

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
_CONTENT_LENGTH = b"content-length: 1000\r\n\r\n"
_CHUNKED_ENCODING = b"transfer-encoding: chunked\r\n\r\n"
_NO_LENGTH = b"connection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class BreakPoint:
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


def _build_framed_answers(framing: bytes, whole: bytes, streamed: bytes) -> tuple[bytes, bytes]:
    """Return a whole and a streamed answer with this much body."""
    bodies = (
        b"%x\r\n%b\r\n" % (len(body), body) if framing is _CHUNKED_ENCODING else body for body in (whole, streamed)
    )
    first, second = (_HEAD + framing + body for body in bodies)
    return first, second


_EVENT = json.dumps({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}).encode()
_TOKEN = json.dumps({"choices": [{"index": 0, "delta": {"content": "Do"}}]}).encode()
_BLANK_LINES = (b" \n\n", b": keep-alive\n\n")
_FIRST_BYTES = (b"\n", b"data: " + _EVENT + b"\n\n")
_PARTIAL_BODY = (b'{"choices": [{"mess', b"data: " + _TOKEN[:-20])
_HALF_BODY = (b'{"choices": [{"message": {"content": "Do', b"data: " + _EVENT + b"\n\ndata: " + _TOKEN + b"\n\ndata: {")

CONNECTION_RESET, DISCONNECTED, ANSWER_CUT, NOT_AN_ANSWER = (
    "connection_reset",
    "disconnected",
    "answer_cut",
    "not_an_answer",
)
BREAK_POINTS = (
    BreakPoint("nothing", b"", b"", CONNECTION_RESET, DISCONNECTED),
    BreakPoint("half-status-line", b"HTTP/1.1 2", b"HTTP/1.1 2", CONNECTION_RESET, DISCONNECTED),
    BreakPoint("status-line", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n", CONNECTION_RESET, DISCONNECTED),
    BreakPoint("half-headers", _HEAD, _HEAD, CONNECTION_RESET, DISCONNECTED),
    BreakPoint("interim-answer", *(b"HTTP/1.1 100 Continue\r\n\r\n",) * 2, CONNECTION_RESET, DISCONNECTED),
    BreakPoint(
        "headers-with-length", _HEAD + _CONTENT_LENGTH, _HEAD + _CONTENT_LENGTH, CONNECTION_RESET, CONNECTION_RESET
    ),
    BreakPoint(
        "headers-of-chunks", _HEAD + _CHUNKED_ENCODING, _HEAD + _CHUNKED_ENCODING, CONNECTION_RESET, CONNECTION_RESET
    ),
    BreakPoint("headers-without-length", _HEAD + _NO_LENGTH, _HEAD + _NO_LENGTH, CONNECTION_RESET, NOT_AN_ANSWER),
    BreakPoint(
        "blank-with-length", *_build_framed_answers(_CONTENT_LENGTH, *_BLANK_LINES), CONNECTION_RESET, CONNECTION_RESET
    ),
    BreakPoint(
        "blank-in-chunks", *_build_framed_answers(_CHUNKED_ENCODING, *_BLANK_LINES), CONNECTION_RESET, CONNECTION_RESET
    ),
    BreakPoint(
        "blank-without-length", *_build_framed_answers(_NO_LENGTH, *_BLANK_LINES), CONNECTION_RESET, NOT_AN_ANSWER
    ),
    BreakPoint(
        "opened-with-length", *_build_framed_answers(_CONTENT_LENGTH, *_FIRST_BYTES), CONNECTION_RESET, CONNECTION_RESET
    ),
    BreakPoint(
        "opened-in-chunks", *_build_framed_answers(_CHUNKED_ENCODING, *_FIRST_BYTES), CONNECTION_RESET, CONNECTION_RESET
    ),
    BreakPoint("begun-with-length", *_build_framed_answers(_CONTENT_LENGTH, *_PARTIAL_BODY), ANSWER_CUT, ANSWER_CUT),
    BreakPoint("begun-in-chunks", *_build_framed_answers(_CHUNKED_ENCODING, *_PARTIAL_BODY), ANSWER_CUT, ANSWER_CUT),
    BreakPoint("half-with-length", *_build_framed_answers(_CONTENT_LENGTH, *_HALF_BODY), ANSWER_CUT, ANSWER_CUT),
    BreakPoint("half-in-chunks", *_build_framed_answers(_CHUNKED_ENCODING, *_HALF_BODY), ANSWER_CUT, ANSWER_CUT),
    BreakPoint("half-without-length", *_build_framed_answers(_NO_LENGTH, *_HALF_BODY), ANSWER_CUT, ""),
    BreakPoint("ssh-banner", *(b"SSH-2.0-OpenSSH_9.2\r\n",) * 2, "not_http", "not_http"),
    BreakPoint("tls-alert", *(b"\x15\x03\x01\x00\x02\x02\x28",) * 2, "not_http", "not_http"),
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
        point = next(point for point in BREAK_POINTS if point.name == name)
        self.wfile.write(point.streamed if request.get("stream") else point.sent)
        if ending == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
