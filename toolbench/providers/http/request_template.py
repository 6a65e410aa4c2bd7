"""Everything that is the same for all requests to one address with one key, made once."""

import functools
from dataclasses import dataclass, field

import httpx

from toolbench.engine.types import JsonObject
from toolbench.providers.endpoint import Endpoint, Timeouts
from toolbench.providers.masking.secrets import Masker, build_masker

ANTHROPIC_VERSION = "2023-06-01"  # the last one that takes sampling parameters; an extra header asks for another
_FIXED_HEADERS = {
    "accept": "application/json, text/event-stream",
    "accept-encoding": "identity",
    "content-type": "application/json",
    "user-agent": "toolbench/0.1",
}


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """`masked_url` and `masked_headers` are masked (`is_masked` says whether that changed them), the others are what is
    sent."""

    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    masker: Masker = field(repr=False)
    masked_url: str
    masked_headers: JsonObject
    is_masked: bool
    timeouts: Timeouts

    def request(self, body: bytes | None) -> httpx.Request:
        """A POST of `body`, or a GET without one. Raises httpx.InvalidURL or ValueError for what HTTP cannot say."""
        return httpx.Request(
            "GET" if body is None else "POST",
            _parse_url(self.url),
            headers=_encode_headers(self.headers),
            stream=httpx.ByteStream(body or b""),
            extensions={"timeout": {"connect": self.timeouts.connect, "read": self.timeouts.read}},
        )


def build_request_template(endpoint: Endpoint, path: str) -> RequestTemplate:
    """The line to `path` at this endpoint; asking twice gives the same one. Extra headers win over ours."""
    extra = tuple((str(name).lower(), str(value)) for name, value in endpoint.headers.items())
    return _build_template(endpoint.url(path), endpoint.base_url, endpoint.key, endpoint.wire, extra, endpoint.timeouts)


def build_endpoint_masker(endpoint: Endpoint) -> Masker:
    """The masker for all that this endpoint's secrets may stand in."""
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
    """Who asks, and for which version of the API."""
    if wire == "anthropic":
        return {"anthropic-version": ANTHROPIC_VERSION, **({"x-api-key": key} if key else {})}
    return {"authorization": f"Bearer {key}"} if key else {}


@functools.lru_cache(maxsize=256)
def _parse_url(url: str) -> httpx.URL:
    return httpx.URL(url)


@functools.lru_cache(maxsize=256)
def _encode_headers(headers: tuple[tuple[str, str], ...]) -> httpx.Headers:
    return httpx.Headers(headers)
