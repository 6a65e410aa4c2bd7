"""Template of the requests to one endpoint: the parts that they share, built once and cached."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx

from toolbench.engine.identity_key import IdentityKey
from toolbench.engine.types import JsonObject
from toolbench.providers.endpoint import Endpoint, NetworkAccess, Timeouts
from toolbench.providers.masking.secrets import Masker, build_masker

ANTHROPIC_VERSION = "2023-06-01"  # the last with temperature, top_p and top_k; an extra header can replace it
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
        masker: masker for the endpoint's secrets.
        masked_url: the address for display.
        masked_headers: the headers for display.
        is_masked: whether masking changed the address or the headers.
        network: proxy and certificates with which the request is sent.
    """

    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    masker: Masker = field(repr=False)
    masked_url: str
    masked_headers: JsonObject
    is_masked: bool
    timeouts: Timeouts
    network: NetworkAccess

    def build_request(self, body: bytes | None) -> httpx.Request:
        """Build a POST of `body`, or a GET if `body` is None.

        Raises:
            httpx.InvalidURL: the URL is not valid.
            ValueError: a header cannot be sent over HTTP.
        """
        return httpx.Request(
            "GET" if body is None else "POST",
            _parse_url(self.url),
            headers=_encode_headers(self.headers),
            stream=httpx.ByteStream(body or b""),
            extensions={
                "timeout": {"connect": self.timeouts.connect, "read": self.timeouts.read},
                "network": self.network,
            },
        )


@dataclass(frozen=True, slots=True)
class _TemplateKey:
    """Cache key of a template: the values that it is built from."""

    url: str
    base_url: str
    query: str  # of the endpoint; never secret, unlike a query in the base URL
    key: str = field(repr=False)
    key_header: str
    wire: str
    extra_headers: tuple[tuple[str, str], ...] = field(repr=False)
    timeouts: Timeouts
    network: NetworkAccess


def build_request_template(endpoint: Endpoint, path: str) -> RequestTemplate:
    """Return the template for `path` at this endpoint, from the cache if it has been built before.

    The cache finds an endpoint by its identity, which is faster than by its values. `endpoint.headers` replace all
    other headers of the same names.

    Args:
        endpoint: the endpoint.
        path: path after the endpoint's API prefix, as for `Endpoint.build_url`.
    """
    return _find_template(IdentityKey(endpoint), path)


def build_endpoint_masker(endpoint: Endpoint) -> Masker:
    """Return the masker for every text that may hold this endpoint's secrets."""
    return build_request_template(endpoint, "").masker


@functools.lru_cache(maxsize=1024)
def _find_template(key: IdentityKey[Endpoint], path: str) -> RequestTemplate:
    endpoint = key.value
    extra_headers = tuple((str(name).lower(), str(value)) for name, value in endpoint.headers.items())
    return _build_template(
        _TemplateKey(
            url=endpoint.build_url(path),
            base_url=endpoint.base_url,
            query=endpoint.query,
            key=endpoint.key,
            key_header=endpoint.key_header,
            wire=endpoint.wire,
            extra_headers=extra_headers,
            timeouts=endpoint.timeouts,
            network=endpoint.network,
        )
    )


@functools.lru_cache(maxsize=256)
def _build_template(source: _TemplateKey) -> RequestTemplate:
    url, extra_headers = source.url, source.extra_headers
    auth = _build_auth_headers(source.key, source.wire, source.key_header)
    headers = _FIXED_HEADERS | auth | dict(extra_headers)
    masker = build_masker(
        source.key, (*extra_headers, *_list_further_secrets(source)), (source.base_url, url.removesuffix(source.query))
    )
    masked_url, masked_headers = masker.mask_text(url), masker.mask_headers(headers)
    return RequestTemplate(
        url=url,
        headers=tuple(headers.items()),
        masker=masker,
        masked_url=masked_url,
        masked_headers=masked_headers,
        is_masked=masked_url != url or masked_headers != headers,
        timeouts=source.timeouts,
        network=source.network,
    )


def _list_further_secrets(source: _TemplateKey) -> Iterator[tuple[str, str]]:
    """Yield the key in `key_header` and the login of the proxy, as headers for `build_masker`.

    `build_masker` masks a value also without its first word, so the login after "Basic". No header is called
    `proxy-password`: the pair only adds the password to the secrets.
    """
    if source.key and source.key_header:
        yield source.key_header, source.key
    if login := source.network.proxy_login:
        yield "proxy-authorization", f"Basic {login}"
        yield "proxy-password", login.partition(":")[2]


def _build_auth_headers(key: str, wire: str, key_header: str) -> dict[str, str]:
    """Return the headers for the key and, for Anthropic, the API version."""
    version_header = {"anthropic-version": ANTHROPIC_VERSION} if wire == "anthropic" else {}
    if not key:
        return version_header
    if key_header:
        return {**version_header, key_header.lower(): key}
    return {**version_header, "x-api-key": key} if version_header else {"authorization": f"Bearer {key}"}


@functools.lru_cache(maxsize=256)
def _parse_url(url: str) -> httpx.URL:
    return httpx.URL(url)


@functools.lru_cache(maxsize=256)
def _encode_headers(headers: tuple[tuple[str, str], ...]) -> httpx.Headers:
    return httpx.Headers(headers)
