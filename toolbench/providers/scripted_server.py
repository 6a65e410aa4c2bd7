"""HTTP server on this machine that sends scripted replies, for tests.

A reply can be late, truncated, missing, ended by a reset, or not HTTP at all.
"""

import json
import socket
import socketserver
import ssl
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from io import BufferedIOBase, BufferedReader
from types import TracebackType
from typing import Any, cast

from toolbench.engine.types import JsonObject
from toolbench.providers.endpoint import Endpoint

_TLS_HANDSHAKE_BYTE = b"\x16"
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 seconds


class ConnectionEnd(StrEnum):
    """Action of the server after the last byte of a reply.

    KEEP keeps the connection for further requests, CLOSE closes it, RESET resets it, and HANG keeps it open without
    sending anything until the server stops.
    """

    KEEP = "keep"
    CLOSE = "close"
    RESET = "reset"
    HANG = "hang"


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """One prepared reply.

    Attributes:
        status: the HTTP status.
        headers: headers besides Content-Length and Connection.
        body: bytes, or chunks that are sent one by one without Content-Length.
        declared: Content-Length in bytes to send in place of the true one.
        raw: bytes that replace the whole reply, head included.
        delay: seconds before the first byte.
        pause: seconds after each chunk.
        ending: what happens to the connection after the reply.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | Iterable[bytes] = b""
    declared: int | None = None
    raw: bytes | None = None
    delay: float = 0.0
    pause: float = 0.0
    ending: ConnectionEnd = ConnectionEnd.KEEP


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One received request, its header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body parsed as JSON."""
        return json.loads(self.body)


def chat_reply(message: JsonObject, *, finish_reason: str = "stop", **more: Any) -> ScriptedReply:
    """Build a chat completion with this message.

    `more` are further members of the body, such as usage or error.
    """
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    body = {"id": "scripted-1", "object": "chat.completion", "model": "scripted", "choices": [choice], "usage": usage}
    return json_reply(body | more)


def text_reply(text: str) -> ScriptedReply:
    """Build a chat completion with a plain text."""
    return chat_reply({"content": text})


def completion_reply(text: str, *, finish_reason: str = "stop") -> ScriptedReply:
    """Build a completion of a prompt with this text."""
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish_reason}
    return json_reply({"object": "text_completion", "model": "scripted", "choices": [choice], "usage": usage})


def tool_call_reply(*calls: tuple[str, JsonObject]) -> ScriptedReply:
    """Build a chat completion with one tool call per (name, arguments); ids are call_1, call_2 and so on."""
    tool_calls = [
        {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for number, (name, arguments) in enumerate(calls, start=1)
    ]
    return chat_reply({"content": None, "tool_calls": tool_calls}, finish_reason="tool_calls")


def error_reply(status: int, message: str = "", **more: Any) -> ScriptedReply:
    """Build an error in OpenAI's format; `more` are further members of the error object."""
    return json_reply({"error": {"message": message, "code": status} | more}, status=status)


def json_reply(value: object, *, status: int = 200, headers: dict[str, str] | None = None) -> ScriptedReply:
    """Build a reply whose body is the value as JSON."""
    return ScriptedReply(status, {"content-type": "application/json"} | (headers or {}), json.dumps(value).encode())


ReplyScript = Iterable[ScriptedReply] | Callable[[ReceivedRequest], ScriptedReply]


class ScriptedServer:
    """Server on this machine that sends scripted replies.

    It runs in threads of its own from `start` to `stop`. The script is a list of replies, one for each request in
    order of arrival, or a function of the request. After the last reply of a list, every request gets status 400.

    Attributes:
        seen: requests received so far, in order.
        connections: number of connections accepted.
        arrived: semaphore that is released once per request.
        stopping: event that `stop` sets.
    """

    def __init__(self, script: ReplyScript = (), *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self.seen: list[ReceivedRequest] = []
        self.connections = 0
        self.arrived = threading.Semaphore(0)
        self.stopping = threading.Event()
        self._script: Callable[[ReceivedRequest], ScriptedReply] | Iterator[ScriptedReply] = (
            script if callable(script) else iter(script)
        )
        self._script_lock = threading.Lock()
        self._server = _TcpServer((host, 0), _ConnectionHandler)
        self._server.provider = self
        self._scheme = "http"
        if tls is not None:
            self._scheme = "https"
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def base_url(self) -> str:
        """Address of the server without a path."""
        host, port = self._server.server_address[:2]
        return f"{self._scheme}://{host!s}:{port}"

    def endpoint(self, **more: Any) -> Endpoint:
        """Return an endpoint for this server; `more` are further fields of `Endpoint`."""
        return Endpoint(**({"base_url": self.base_url, "model": "scripted"} | more))

    def set_script(self, *script: ScriptedReply) -> None:
        """Replace the replies that have not been sent yet."""
        with self._script_lock:
            self._script = iter(script)

    def take_next_reply(self, request: ReceivedRequest) -> ScriptedReply:
        """Return the reply to this request and add the request to `seen`."""
        with self._script_lock:
            self.seen.append(request)
            script = self._script
            reply = (
                script(request)
                if callable(script)
                else next(script, error_reply(400, "The script holds no more answers."))
            )
        self.arrived.release()
        return reply

    def start(self) -> "ScriptedServer":
        """Start serving and return the server."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop serving and wait for the server's thread."""
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> "ScriptedServer":
        return self.start()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


class _TcpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 256
    provider: ScriptedServer

    def shutdown_request(self, request: Any) -> None:
        """Close the connection without a half-close, which would turn a reset into a normal end."""
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the error: a client may close its connection at any time."""


class _ConnectionHandler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self) -> None:
        """Answer the requests of one connection until a reply or the client ends it."""
        provider = cast(_TcpServer, self.server).provider
        provider.connections += 1
        # A TLS client gets an error at once; reading a line would wait for a line break.
        if cast(BufferedReader, self.rfile).peek(1).startswith(_TLS_HANDSHAKE_BYTE):
            self.rfile.read1()
            self.wfile.write(b"HTTP/1.1 400 Not HTTP\r\nconnection: close\r\n\r\n")
            return
        while (request := _read_request(self.rfile)) is not None:
            reply = provider.take_next_reply(request)
            provider.stopping.wait(reply.delay)
            self._send(reply, provider.stopping)
            if reply.ending is ConnectionEnd.HANG:
                provider.stopping.wait()
            if reply.ending is ConnectionEnd.RESET:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            if reply.ending is not ConnectionEnd.KEEP:
                return

    def _send(self, reply: ScriptedReply, stopping: threading.Event) -> None:
        if reply.raw is not None:
            self.wfile.write(reply.raw)
            return
        chunks = (reply.body,) if isinstance(reply.body, bytes) else reply.body
        self.wfile.write(_render_head(reply))
        for chunk in chunks:
            self.wfile.write(chunk)
            stopping.wait(reply.pause)


def _render_head(reply: ScriptedReply) -> bytes:
    headers = dict(reply.headers)
    content_length = reply.declared
    if content_length is None and isinstance(reply.body, bytes):
        content_length = len(reply.body)
    if content_length is not None:
        headers["content-length"] = str(content_length)
    if reply.ending is not ConnectionEnd.KEEP:
        headers["connection"] = "close"
    lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def _read_request(stream: BufferedIOBase) -> ReceivedRequest | None:
    """Read the next request on a connection; return None if the client closed it or sent no request line."""
    request_line = stream.readline().decode("latin-1").split()
    if len(request_line) < 2:
        return None
    headers: dict[str, str] = {}
    while line := stream.readline().decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return ReceivedRequest(
        request_line[0], request_line[1], headers, stream.read(int(headers.get("content-length", 0)))
    )
