"""One HTTP request and its response, stored as it arrives, so that a partial response is kept."""

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
MIN_THREAD_MASKING_BYTES = 64 * 1024  # bodies of this size and above are masked in a thread
MAX_TIMED_CHUNKS = 10_000  # further chunks are counted as part of the last one


@dataclass(slots=True)
class Exchange:
    """One HTTP request and its response.

    Secrets are masked in every public value except `sent_body`, `template` and `exception`. Bodies are kept without
    content coding.

    Attributes:
        template: URL, headers and masker of the request.
        sent_body: the request's body, unmasked; None for a GET.
        clock: returns seconds; the times below are read from it.
        started_at: when the exchange was built.
        on_chunk: called with each chunk of the body as it arrives, unmasked, if the status is below 300.
        first_byte_at: when the first chunk arrived; None before.
        first_token_at: when the first part of the answer was read; None before.
        first_call_at: when the arguments of a call were first complete; None before.
        ended_at: when the exchange ended; `started_at` before.
        status: the HTTP status; None before the response head arrives.
        body_bytes: bytes received over the network, before decompression.
        is_truncated: whether the body, with or without its content coding, exceeded `MAX_BODY_BYTES`, so that its rest
            was not read.
        exception: the error that ended the exchange, or None; its text may contain a secret.
        request_body: the request's body, b"" for a GET.
        chunks: (ms since the start, bytes kept) in the order received.
    """

    template: RequestTemplate
    sent_body: bytes | None = field(repr=False)
    clock: Callable[[], float] = field(repr=False)
    started_at: float = 0.0
    on_chunk: Callable[[bytes], None] | None = field(default=None, repr=False)
    first_byte_at: float | None = None
    first_token_at: float | None = None
    first_call_at: float | None = None
    ended_at: float = 0.0
    status: int | None = None
    body_bytes: int = 0
    is_truncated: bool = False
    exception: Exception | None = None
    request_body: bytes = field(init=False)
    chunks: list[tuple[float, int]] = field(default_factory=list)
    _kept_bytes: int = 0
    _kept_chunks: list[bytes] = field(default_factory=list, repr=False)
    _headers: JsonObject = field(default_factory=dict, repr=False)
    _masked_headers: JsonObject | None = field(default=None, repr=False)
    _decompressor: Decompressor | None = field(default=None, repr=False)
    _body: bytes | None = field(default=None, repr=False)
    _is_body_masked: bool = False

    def __post_init__(self) -> None:
        self.request_body = self.template.masker.mask_body(self.sent_body or b"", join_parts=False)
        self.started_at = self.ended_at = self.clock()

    def build_request(self) -> httpx.Request:
        """Build the request to send.

        Raises:
            httpx.InvalidURL: the URL is not valid.
            ValueError: a header cannot be sent over HTTP.
        """
        return self.template.build_request(self.sent_body)

    def start_response(self, response: httpx.Response) -> None:
        """Store the status and the headers of a response whose body has not been read yet.

        Raises:
            httpx.DecodingError: the content coding is not supported.
        """
        self.status = response.status_code
        self._masked_headers = None
        self._headers = _join_headers(response.headers)
        coding = self._headers.get("content-encoding", "").strip().lower()
        if coding not in ("", "identity"):
            self._decompressor = Decompressor(coding)

    def add_chunk(self, chunk: bytes) -> bool:
        """Keep a chunk of the body.

        Returns:
            False once `MAX_BODY_BYTES` is exceeded; the caller must not read the rest of the body then.

        Raises:
            httpx.DecodingError: the chunk is not valid in the content coding of the response.
        """
        now = self.clock()
        if self.first_byte_at is None:
            self.first_byte_at = now
        self.body_bytes += len(chunk)
        max_bytes = MAX_BODY_BYTES - self._kept_bytes
        if self._decompressor is None:
            kept_chunk, self.is_truncated = chunk[:max_bytes], len(chunk) > max_bytes
        else:
            kept_chunk, exceeds_max = self._decompressor.decompress_chunk(chunk, max_bytes)
            self.is_truncated = exceeds_max or self.body_bytes > MAX_BODY_BYTES
        self._kept_bytes += len(kept_chunk)
        self._kept_chunks.append(kept_chunk)
        self._record_chunk_time(now, len(kept_chunk))
        if self.on_chunk is not None and self.status is not None and self.status < 300:
            self.on_chunk(kept_chunk)
        return not self.is_truncated

    def record_progress(self, *, has_complete_call: bool) -> None:
        """Set the times of the first token and of the first complete call to now, unless they are set.

        Call it whenever a part of the answer was read.

        Args:
            has_complete_call: whether that part completes the arguments of a call.
        """
        now = self.clock()
        self.first_token_at = now if self.first_token_at is None else self.first_token_at
        if has_complete_call and self.first_call_at is None:
            self.first_call_at = now

    def _record_chunk_time(self, now: float, kept_bytes: int) -> None:
        if len(self.chunks) < MAX_TIMED_CHUNKS:
            self.chunks.append(((now - self.started_at) * 1000, kept_bytes))
        else:
            self.chunks[-1] = (self.chunks[-1][0], self.chunks[-1][1] + kept_bytes)

    def finish(self) -> None:
        """Set the end of the exchange to now. No chunk may be added afterwards."""
        self.ended_at = self.clock()
        self._body = None

    @property
    def response_headers(self) -> JsonObject:
        """Masked headers of the response with lower-case names.

        The values of a repeated header are joined with commas. The headers are {} before the response head arrives.
        """
        if self._masked_headers is None:
            self._masked_headers = self.template.masker.mask_headers(self._headers)
        return self._masked_headers

    @property
    def body(self) -> bytes:
        """Masked body of the response, or the part of it that arrived. Read it only after `finish`."""
        if self._body is None:
            received = b"".join(self._kept_chunks)
            self._store_body(received, self.template.masker.mask_body(received))
        return self._body or b""

    async def mask_large_body(self) -> None:
        """Mask a body of `MIN_THREAD_MASKING_BYTES` or more in a thread.

        Masking a body that repeats the key takes up to two seconds per MB, which must not block the event loop. Call
        it after `finish`. If the task is cancelled meanwhile, the cancellation is raised once the body is masked.
        """
        if self._kept_bytes < MIN_THREAD_MASKING_BYTES:
            return
        received = b"".join(self._kept_chunks)
        masking = asyncio.ensure_future(asyncio.to_thread(self.template.masker.mask_body, received))
        try:
            self._store_body(received, await asyncio.shield(masking))
        except asyncio.CancelledError:
            self._store_body(received, await masking)
            raise

    def _store_body(self, received: bytes, masked: bytes) -> None:
        self._body, self._is_body_masked = masked, masked is not received

    @property
    def has_secret(self) -> bool:
        """Whether the received body holds a secret, so that `body` differs from it.

        Read it only after `finish`.
        """
        _ = self.body  # masks the body and sets `_is_body_masked`
        return self._is_body_masked

    def iter_chunks(self) -> Iterator[bytes]:
        """Yield the masked body, divided as in `chunks`."""
        start = 0
        for _, chunk_bytes in self.chunks:
            yield self.body[start : start + chunk_bytes]
            start += chunk_bytes

    @property
    def is_masked(self) -> bool:
        """Whether a secret is masked in the URL, the request's headers or one of the bodies.

        Read it after `body`, which masks the body of the response.
        """
        is_request_body_masked = self.request_body is not (self.sent_body or b"")
        return self.template.is_masked or is_request_body_masked or self._is_body_masked

    def find_error(self) -> ExchangeError | None:
        """Return the error of this exchange, or None if the body may be an answer. Call it after `finish`."""
        if self.is_truncated and self.status is not None and self.status < 300:
            return build_exchange_error("body_too_large", status=self.status)
        error = classify_response(
            status=self.status,
            headers=self.response_headers if self.status != 200 else {},
            body=self.body,
            exception=self.exception,
        )
        if error is None or self.exception is None:
            return error
        return replace(error, message=self.template.masker.mask_text(error.message))


def _join_headers(headers: httpx.Headers) -> JsonObject:
    joined: JsonObject = {}
    for raw_name, raw_value in headers.raw:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined
