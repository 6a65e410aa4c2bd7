"""One HTTP request and its response, filled in while they happen, so that a partial response is kept."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import httpx

from toolbench.engine.events import ExchangeError
from toolbench.engine.types import JsonObject
from toolbench.providers.http.decompression import Decompressor
from toolbench.providers.http.error_codes import build_exchange_error, classify_response
from toolbench.providers.http.request_template import RequestTemplate

MAX_BODY_BYTES = 16 * 1024 * 1024  # reading of a body stops at this size
MIN_THREAD_MASKING_BYTES = 64 * 1024  # larger bodies are masked in a thread
MAX_TIMED_CHUNKS = 10_000  # further chunks are added to the last one


@dataclass(slots=True)
class Exchange:
    """One HTTP request and its response; every public value except `sent_body` is masked.

    Times are read from `clock`, in seconds. Bodies are kept without content coding.

    Attributes:
        on_chunk: called with each chunk of a success's body as it arrives, unmasked.
        first_byte: when the first chunk arrived; None before.
        first_token: when the first piece of the answer was read; None before.
        first_call: when the arguments of a call were first complete; None before.
        body_bytes: bytes received over the network, before decompression.
        cut: whether the body exceeded `MAX_BODY_BYTES` and was truncated.
        chunks: (ms since the start, bytes of the kept body) in the order received.
    """

    template: RequestTemplate
    sent_body: bytes | None = field(repr=False)  # unmasked: for sending only
    clock: Callable[[], float] = field(repr=False)
    started: float = 0.0
    on_chunk: Callable[[bytes], None] | None = field(default=None, repr=False)
    first_byte: float | None = None
    first_token: float | None = None
    first_call: float | None = None
    ended: float = 0.0
    status: int | None = None
    body_bytes: int = 0
    cut: bool = False
    exception: Exception | None = None
    request_body: bytes = field(init=False)
    chunks: list[tuple[float, int]] = field(default_factory=list)
    _size: int = 0
    _received_chunks: list[bytes] = field(default_factory=list, repr=False)
    _headers: httpx.Headers | None = field(default=None, repr=False)
    _masked_headers: JsonObject | None = field(default=None, repr=False)
    _decompressor: Decompressor | None = field(default=None, repr=False)
    _body: bytes | None = field(default=None, repr=False)
    _body_masked: bool = False

    def __post_init__(self) -> None:
        self.request_body = self.template.masker.mask_body(self.sent_body or b"", parts=False)
        self.started = self.ended = self.clock()

    def request(self) -> httpx.Request:
        """Return the request to send.

        Raises:
            httpx.InvalidURL: the URL is not valid.
            ValueError: a header cannot be sent over HTTP.
        """
        return self.template.request(self.sent_body)

    def start_response(self, response: httpx.Response) -> None:
        """Store status and headers of the response.

        Raises:
            httpx.DecodingError: the content coding is not supported.
        """
        self.status = response.status_code
        self._masked_headers = None
        self._headers = response.headers
        coding = response.headers.get("content-encoding", "").strip().lower()
        if coding not in ("", "identity"):
            self._decompressor = Decompressor(coding)

    def add_chunk(self, chunk: bytes) -> bool:
        """Keep a chunk of the body.

        Returns:
            False once `MAX_BODY_BYTES` is exceeded; the rest of the body must not be read then.
        """
        now = self.clock()
        if self.first_byte is None:
            self.first_byte = now
        self.body_bytes += len(chunk)
        room = MAX_BODY_BYTES - self._size
        if self._decompressor is None:
            piece, self.cut = chunk[:room], len(chunk) > room
        else:
            piece, self.cut = self._decompressor.decompress_chunk(chunk, room)
        self._size += len(piece)
        self._received_chunks.append(piece)
        self._record_chunk_time(now, len(piece))
        if self.on_chunk is not None and self.status is not None and self.status < 300:
            self.on_chunk(piece)
        return not self.cut

    def record_progress(self, *, call: bool) -> None:
        """Note that part of the answer was read now; `call` says that the arguments of a call are complete."""
        now = self.clock()
        self.first_token = now if self.first_token is None else self.first_token
        if call and self.first_call is None:
            self.first_call = now

    def _record_chunk_time(self, now: float, size: int) -> None:
        if len(self.chunks) < MAX_TIMED_CHUNKS:
            self.chunks.append(((now - self.started) * 1000, size))
        else:
            self.chunks[-1] = (self.chunks[-1][0], self.chunks[-1][1] + size)

    def finish(self) -> None:
        """Note the end of the exchange; no chunk may follow."""
        self.ended = self.clock()
        self._body = None

    @property
    def response_headers(self) -> JsonObject:
        """Masked headers with lower-case names; the values of a repeated header are joined by commas."""
        if self._masked_headers is None:
            self._masked_headers = self.template.masker.mask_headers(_join_headers(self._headers))
        return self._masked_headers

    @property
    def body(self) -> bytes:
        """Masked body as far as it came. Read it only after `finish`."""
        if self._body is None:
            received = b"".join(self._received_chunks)
            self._store_body(received, self.template.masker.mask_body(received))
        return self._body or b""

    async def mask_large_body(self) -> None:
        """Mask a body of `MIN_THREAD_MASKING_BYTES` or more in a thread.

        A body that repeats the key takes up to two seconds per MB, which must not block the event loop. Call it after
        `finish`. When the task is cancelled meanwhile, the cancellation is raised once the body is masked.
        """
        if self._size < MIN_THREAD_MASKING_BYTES:
            return
        received = b"".join(self._received_chunks)
        masking = asyncio.ensure_future(asyncio.to_thread(self.template.masker.mask_body, received))
        try:
            self._store_body(received, await asyncio.shield(masking))
        except asyncio.CancelledError:
            self._store_body(received, await masking)
            raise

    def _store_body(self, received: bytes, masked: bytes) -> None:
        self._body, self._body_masked = masked, masked is not received

    @property
    def has_secret(self) -> bool:
        """Whether the received body holds a secret, so that `body` differs from it."""
        return self.body is not None and self._body_masked

    def iter_chunks(self) -> Iterator[bytes]:
        """Yield the masked body in the chunks in which it came."""
        start = 0
        for _, size in self.chunks:
            yield self.body[start : start + size]
            start += size

    @property
    def masked(self) -> bool:
        """Whether a secret is masked in the URL, the request's headers or one of the bodies."""
        sent, shown = self.sent_body or b"", self.request_body
        return self.template.is_masked or shown is not sent or self._body_masked

    def error(self) -> ExchangeError | None:
        """Return the error of this exchange by the table of error codes; None when the body may be an answer."""
        if self.cut and self.status is not None and self.status < 300:
            return build_exchange_error("body_too_large", status=self.status)
        found = classify_response(
            status=self.status,
            headers=self.response_headers if self.status != 200 else {},
            body=self.body,
            exception=self.exception,
        )
        if found is None or self.exception is None:
            return found
        return replace(found, message=self.template.masker.mask_text(found.message))


def _join_headers(headers: httpx.Headers | None) -> JsonObject:
    joined: JsonObject = {}
    for raw_name, raw_value in headers.raw if headers is not None else ():
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined
