"""Overwriting known secrets before anything is kept, with as many bytes as they had."""

import functools
import re
from collections.abc import Iterable
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from toolbench.engine.messages import JsonObject
from toolbench.providers.answer_texts import joined_parts, texts_of
from toolbench.providers.masked_values import texts_in, with_texts
from toolbench.providers.secret_spellings import Spellings, overwrite

_KEY_LIKE = re.compile(
    r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{16,}"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|^(?:sk|pk|rk|key|token|secret|gsk|hf|nvapi|xai)[-_].{6,}"
)
Value = TypeVar("Value")

SHORTEST_SECRET = 8  # a shorter key ("ollama") is also an ordinary word: it is masked in its header only

_SECRET_HEADER = re.compile(r"authorization|cookie|api[-_]?key|token|secret|password", re.IGNORECASE)
# Extra headers that say who asks and in what form; every other one may be a key, whatever its name.
_OPEN_HEADERS = re.compile(
    r"accept|accept-encoding|accept-language|anthropic-beta|anthropic-version|content-type|http-referer|openai-beta"
    r"|openai-organization|openai-project|referer|user-agent|x-title",
    re.IGNORECASE,
)


class Masker:
    """Knows the secrets of one endpoint, each in every spelling of `secret_spellings`. `headers` are the lower-case
    names of those that carry them."""

    def __init__(self, secrets: Iterable[str], headers: Iterable[str] = ()) -> None:
        self._headers = frozenset(headers)
        known = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
        self._spellings = Spellings(sorted(known))
        self._lowered = sorted({secret.lower() for secret in known}, key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._spellings)

    def mask(self, data: bytes) -> bytes:
        """Return `data` itself when it holds no secret, else a copy of the same length."""
        if not self._spellings.hides_in(data):
            return data
        return overwrite(data, self._spellings.spans(data))

    def mask_body(self, data: bytes, *, parts: bool = True) -> bytes:
        """Mask a body so that JSON stays JSON and a stream keeps its events. With `parts`, also a secret that came in
        parts: over the events of a stream, over the texts of one field."""
        if not self._spellings or not (self._spellings.hides_in(data) or (parts and self._comes_in_parts(data))):
            return data
        texts = texts_of(data)
        masked = overwrite(data, texts.sources(self._spellings.spans(texts.joined)))
        digits = [number for number in texts.numbers if self._spellings.hides_in(data[slice(*number)])]
        return self.mask(overwrite(masked, digits, b"1"))

    def _comes_in_parts(self, data: bytes) -> bool:
        joined = joined_parts(data)
        return self._spellings.hides_in(texts_of(data).joined if joined is None else joined)

    def mask_text(self, text: str) -> str:
        return self.mask(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def mask_value(self, value: Value) -> Value:
        """Return `value` itself when no text in it holds a secret, else a copy: of JSON, or of what was parsed."""
        if not self._spellings or not self._spellings.hides_in(texts_in(value).encode("utf-8", "surrogatepass")):
            return value
        return with_texts(value, self.mask_text)

    def split_at_secret(self, text: str) -> tuple[str, str]:
        """Return the masked text in two: what may be shown, and an end with which a secret may begin."""
        encoded = self.mask_text(text).encode("utf-8", "surrogatepass")
        at = self._spellings.begins_at(encoded)
        return encoded[:at].decode("utf-8", "surrogatepass"), encoded[at:].decode("utf-8", "surrogatepass")

    def mask_headers(self, headers: JsonObject) -> JsonObject:
        """A copy in which headers that carry secrets are overwritten whole: those of this endpoint, and what a name
        gives away."""
        texts = {name: str(value) for name, value in headers.items()}
        together = "\n".join(texts.values()).encode("utf-8", "surrogatepass")
        clean = self.mask(together) is together
        return {
            self._name(name): "*" * len(text) if self._is_secret(name) else text if clean else self.mask_text(text)
            for name, text in texts.items()
        }

    def _name(self, name: str) -> str:
        """Return a header's name with secrets overwritten; they are in lower case, as names are."""
        for secret in self._lowered:
            name = name.replace(secret, "*" * len(secret))
        return name

    def _is_secret(self, name: str) -> bool:
        return name.lower() in self._headers or _named_secret(name)


def is_open(name: str) -> bool:
    """Whether a header of this name is known to carry no secret when a person adds it."""
    return _OPEN_HEADERS.fullmatch(name.strip()) is not None


@functools.lru_cache(maxsize=1024)
def _named_secret(name: str) -> bool:
    return _SECRET_HEADER.search(name) is not None


class _InUse:
    """All secrets that this process has made a masker for."""

    def __init__(self) -> None:
        self._secrets: frozenset[str] = frozenset()
        self.masker = Masker(())

    def add(self, secrets: frozenset[str]) -> None:
        if not secrets <= self._secrets:
            self._secrets |= secrets
            self.masker = Masker(self._secrets)


_in_use = _InUse()


def mask_in_use(text: str) -> str:
    """Mask every secret that `masker_for` was given in this process, for texts such as log records that belong to no
    endpoint."""
    return _in_use.masker.mask_text(text)


def masker_for(key: str, headers: Iterable[tuple[str, str]], base_url: str = "") -> Masker:
    """The masker for an endpoint's key, for what its extra headers carry, but for those known to be no secret, and for
    the secrets in its address."""
    secret = {name.lower(): value for name, value in headers if not is_open(name)}
    credentials = [value.partition(" ")[2].strip() for value in secret.values()]  # what follows "Bearer"
    secrets = frozenset((key, *secret.values(), *credentials, *secrets_in_url(base_url)))
    _in_use.add(secrets)
    return Masker(secrets, secret)


def secrets_in_url(url: str) -> tuple[str, ...]:
    """Return what of an address may be a secret, as it is written and decoded: the user's name and password, the
    values of its query, and the parts of its path that look like keys."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ()
    userinfo = parts.netloc.rpartition("@")[0]
    written = [*userinfo.partition(":")[::2], *(pair.partition("=")[2] for pair in parts.query.split("&"))]
    written += [segment for segment in parts.path.split("/") if looks_like_key(unquote(segment))]
    return tuple(dict.fromkeys(text for one in written if one for text in (one, unquote(one))))


def shown_address(url: str) -> str:
    """Return an address as it may be shown: its secret parts, however short, are stars."""
    begin = url.find("//") + 2
    for secret in sorted(secrets_in_url(url), key=len, reverse=True):
        url = url[:begin] + url[begin:].replace(secret, "*" * len(secret))
    return url


def looks_like_key(text: str) -> bool:
    """Return whether a part of a path looks like a key: a long row of letters with digits, or a name such as `sk-`
    with something behind it."""
    return _KEY_LIKE.search(text) is not None
