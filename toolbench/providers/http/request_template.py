"""Headers and URL shared by all requests to one endpoint with one key, built once."""

import functools
from dataclasses import dataclass, field

import httpx

from toolbench.engine.types import JsonObject
from toolbench.providers.endpoint import Endpoint, Timeouts
from toolbench.providers.masking.secrets import Masker, build_masker

ANTHROPIC_VERSION = "2023-06-01"  # the last version with sampling parameters; an extra header can replace it
_FIXED_HEADERS = {
    "accept": "application/json, text/event-stream",
    "accept-encoding": "identity",
    "content-type": "application/json",
    "user-agent": "toolbench/0.1",
}


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """URL, headers and masker shared by requests to one endpoint.

    Attributes:
        url: the address that is sent, unmasked.
        headers: the headers that are sent, unmasked.
        masked_url: the address for display.
        masked_headers: the headers for display.
        is_masked: whether masking changed the address or the headers.
    """

    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    masker: Masker = field(repr=False)
    masked_url: str
    masked_headers: JsonObject
    is_masked: bool
    timeouts: Timeouts

    def request(self, body: bytes | None) -> httpx.Request:
        """Build a POST of `body`, or a GET when it is None.

        Raises:
            httpx.InvalidURL: the URL is not valid.
            ValueError: a header cannot be sent over HTTP.
        """
        return httpx.Request(
            "GET" if body is None else "POST",
            _parse_url(self.url),
            headers=_encode_headers(self.headers),
            stream=httpx.ByteStream(body or b""),
            extensions={"timeout": {"connect": self.timeouts.connect, "read": self.timeouts.read}},
        )


def build_request_template(endpoint: Endpoint, path: str) -> RequestTemplate:
    """Return the template for `path` at this endpoint, from a cache where possible.

    The endpoint's own headers replace fixed headers of the same name.
    """
    extra = tuple((str(name).lower(), str(value)) for name, value in endpoint.headers.items())
    return _build_template(endpoint.url(path), endpoint.base_url, endpoint.key, endpoint.wire, extra, endpoint.timeouts)


def build_endpoint_masker(endpoint: Endpoint) -> Masker:
    """Return the masker for every text that may hold this endpoint's secrets."""
    return build_request_template(endpoint, "").masker


@functools.lru_cache(maxsize=256)
def _build_template(
    url: str, base_url: str, key: str, wire: str, extra: tuple[tuple[str, str], ...], timeouts: Timeouts
) -> RequestTemplate:
    headers = _FIXED_HEADERS | _build_auth_headers(key, wire) | dict(extra)
    masker = build_masker(key, extra, (base_url, url))
    shown_url, shown_headers = masker.mask_text(url), masker.mask_headers(headers)
    return RequestTemplate(
        url=url,
        headers=tuple(headers.items()),
        masker=masker,
        masked_url=shown_url,
        masked_headers=shown_headers,
        is_masked=shown_url != url or shown_headers != headers,
        timeouts=timeouts,
    )


def _build_auth_headers(key: str, wire: str) -> dict[str, str]:
    """Return the headers for the key and, for Anthropic, the API version."""
    if wire == "anthropic":
        return {"anthropic-version": ANTHROPIC_VERSION, **({"x-api-key": key} if key else {})}
    return {"authorization": f"Bearer {key}"} if key else {}


@functools.lru_cache(maxsize=256)
def _parse_url(url: str) -> httpx.URL:
    return httpx.URL(url)


@functools.lru_cache(maxsize=256)
def _encode_headers(headers: tuple[tuple[str, str], ...]) -> httpx.Headers:
    return httpx.Headers(headers)
