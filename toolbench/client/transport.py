"""Transport of the client: it sends requests with the token, waits after 429 and caches answers."""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from toolbench.client.errors import TooManyRequestsError, UnreachableError, build_error

PREFIX = "/api/v1"
TIMEOUT_SECONDS = 60.0
MAX_WAITS = 3  # for one request that is answered with 429; then the error is raised
MAX_CACHED_ANSWERS = 100
_LOGIN = re.compile(r"^(\w+://)?.*@", re.DOTALL)  # matches https://name:password@ of https://name:password@host
_TOKEN = re.compile("[!-~]+")  # ASCII characters that are printable, without the space


@dataclass(slots=True)
class Transport:
    """Connection to one server, with a cache of the server's answers.

    Attributes:
        http: HTTP client with the address and the token.
        wait: function that waits for a number of seconds.
        clock: function that returns the seconds of a monotonic clock.
        has_answered: whether the server has answered a request, even if with an error.
    """

    http: httpx.Client
    wait: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    has_answered: bool = False
    _cache: dict[str, httpx.Response] = field(default_factory=dict)  # answers with an ETag by URL, the oldest first

    @classmethod
    def connect(cls, base_url: str, token: str, http: httpx.Client | None = None) -> "Transport":
        """Return the transport for an address. No request is sent.

        Args:
            base_url: address of the server, without `/api/v1`.
            token: API token; white space around it is ignored.
            http: HTTP client to use; it gets the address and the token. None to create one.

        Raises:
            UnreachableError: `base_url` is not a URL, or `token` cannot be a token.
        """
        token = token.strip()
        if not _TOKEN.fullmatch(token):
            raise UnreachableError("The token is empty or has characters that no token has. Copy it again.")
        client = http or httpx.Client(timeout=TIMEOUT_SECONDS)
        try:
            client.base_url = httpx.URL(base_url.rstrip("/") + PREFIX)
        except httpx.InvalidURL:  # the error may quote a part of the password
            raise UnreachableError(f"{_mask_login(base_url)} is not a URL. Check the address.") from None
        client.headers["Authorization"] = f"Bearer {token}"
        return cls(client)

    def get(self, path: str, params: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON value at a path, which the caller may change; an unchanged answer comes from the cache.

        Raises:
            ToolbenchError: the API refused the request, or the answer is not JSON.
            UnreachableError: the server did not answer.
        """
        url = str(self.http.build_request("GET", path, params=_drop_none(params)).url)
        cached = self._cache.get(url)
        headers = {"If-None-Match": cached.headers["ETag"]} if cached else {}
        response = self.send("GET", path, params=params, headers=headers)
        if cached and response.status_code == 304:
            return read_json(cached)
        value = read_json(response)
        if "ETag" in response.headers:
            self._add_to_cache(url, response)
        return value

    def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send a request and return the response.

        After 429 with seconds in Retry-After, wait for so long and send the request again, up to `MAX_WAITS` times.

        Args:
            method: HTTP method.
            path: path below `/api/v1`.
            params: parameters of the query string; None values are left out.
            body: JSON value of the body; None for no body.
            headers: headers to add.

        Raises:
            ToolbenchError: the API refused the request.
            UnreachableError: the server did not answer.
        """
        for wait_count in range(MAX_WAITS + 1):
            try:
                return self._send_once(method, path, params, body, dict(headers or {}))
            except TooManyRequestsError as error:
                if wait_count == MAX_WAITS or error.retry_after is None:
                    raise
                self.wait(error.retry_after)
        raise AssertionError("unreachable")

    def _send_once(
        self, method: str, path: str, params: Mapping[str, Any] | None, body: Any, headers: dict[str, str]
    ) -> httpx.Response:
        content = None if body is None else json.dumps(body).encode()
        headers |= {} if body is None else {"Content-Type": "application/json"}
        try:
            response = self.http.request(method, path, params=_drop_none(params), content=content, headers=headers)
        except (httpx.LocalProtocolError, UnicodeEncodeError):  # the error quotes the header, which may hold a secret
            raise UnreachableError("The request was not sent: HTTP does not allow one of its headers.") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            url = _mask_login(str(self.http.base_url))
            raise UnreachableError(f"{url} did not answer ({error}). Check the address, then try again.") from error
        self.has_answered = True
        if not response.is_success and response.status_code != 304:
            raise build_error(response.status_code, _read_object(response), response.headers.get("Retry-After"))
        return response

    def _add_to_cache(self, url: str, response: httpx.Response) -> None:
        self._cache.pop(url, None)
        if len(self._cache) >= MAX_CACHED_ANSWERS:
            self._cache.pop(next(iter(self._cache)))
        self._cache[url] = response


def _mask_login(url: str) -> str:
    """Return an address with `***` in place of its user name and password."""
    return _LOGIN.sub(r"\1***@", url)


def _drop_none(params: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (params or {}).items() if value is not None}


def read_json(response: httpx.Response) -> Any:
    """Return the JSON value of a response; None for an empty body.

    Raises:
        ToolbenchError: the body is not JSON.
    """
    try:
        return response.json() if response.content else None
    except ValueError as error:
        raise build_error(response.status_code, {}, None) from error


def _read_object(response: httpx.Response) -> Mapping[str, Any]:
    try:
        value = response.json()
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
