"""Masking of known secrets before anything is stored, with their length kept."""

import functools
import re
from collections.abc import Iterable
from typing import TypeVar

from toolbench.engine.types import JsonObject
from toolbench.providers.masking.body_texts import extract_texts, join_split_texts
from toolbench.providers.masking.spellings import MIN_SECRET_CHARS, SecretSpellings, overwrite
from toolbench.providers.masking.url_keys import find_url_secrets
from toolbench.providers.masking.values import collect_texts, map_texts

Value = TypeVar("Value")

_SECRET_HEADERS = re.compile(r"authorization|cookie|api[-_]?key|token|secret|password", re.IGNORECASE)
# Extra headers that identify the client or a format; any other one may hold a key, whatever its name.
_PUBLIC_HEADERS = re.compile(
    r"accept|accept-encoding|accept-language|anthropic-beta|anthropic-version|content-type|http-referer|openai-beta"
    r"|openai-organization|openai-project|referer|user-agent|x-title",
    re.IGNORECASE,
)


class Masker:
    """Masker of one endpoint's secrets in every spelling of `SecretSpellings`.

    Secrets shorter than `MIN_SECRET_CHARS` are masked only in their headers. `headers` are the lower-case names of
    headers that carry secrets. A masker without secrets is false.
    """

    def __init__(self, secrets: Iterable[str], headers: Iterable[str] = ()) -> None:
        self._headers = frozenset(headers)
        known = {secret for secret in secrets if len(secret) >= MIN_SECRET_CHARS}
        self._spellings = SecretSpellings(sorted(known))
        self._lowered = sorted({secret.lower() for secret in known}, key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._spellings)

    def mask(self, data: bytes) -> bytes:
        """Return `data` itself when it holds no secret, else a masked copy of the same length."""
        if not self._spellings.has_match(data):
            return data
        return overwrite(data, self._spellings.find_spans(data))

    def mask_body(self, data: bytes, *, parts: bool = True) -> bytes:
        """Mask a body so that JSON stays valid and a stream keeps its events.

        With `parts`, a secret is also found when it came in parts: over the events of a stream, or the texts of one
        field. Without a secret, `data` itself is returned.
        """
        if not self._spellings or not (self._spellings.has_match(data) or (parts and self._has_split_secret(data))):
            return data
        texts = extract_texts(data)
        masked = overwrite(data, texts.map_to_body(self._spellings.find_spans(texts.joined)))
        digits = [number for number in texts.numbers if self._spellings.has_match(data[slice(*number)])]
        return self.mask(overwrite(masked, digits, b"1"))

    def _has_split_secret(self, data: bytes) -> bool:
        joined = join_split_texts(data)
        return self._spellings.has_match(extract_texts(data).joined if joined is None else joined)

    def mask_text(self, text: str) -> str:
        """Return the text with secrets masked."""
        return self.mask(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def mask_value(self, value: Value) -> Value:
        """Return `value` itself when no text in it holds a secret, else a masked copy.

        `value` may be JSON or a parsed dataclass.
        """
        if not self._spellings or not self._spellings.has_match(collect_texts(value).encode("utf-8", "surrogatepass")):
            return value
        return map_texts(value, self.mask_text)

    def split_at_secret(self, text: str) -> tuple[str, str]:
        """Return the masked text in two parts: the part to show, and an end with which a secret may begin."""
        encoded = self.mask_text(text).encode("utf-8", "surrogatepass")
        at = self._spellings.find_partial_start(encoded)
        return encoded[:at].decode("utf-8", "surrogatepass"), encoded[at:].decode("utf-8", "surrogatepass")

    def mask_headers(self, headers: JsonObject) -> JsonObject:
        """Return a copy of the headers with secrets masked.

        A header is masked whole when it is one of this endpoint's secret headers or its name indicates a secret.
        """
        texts = {name: str(value) for name, value in headers.items()}
        together = "\n".join(texts.values()).encode("utf-8", "surrogatepass")
        clean = self.mask(together) is together
        return {
            self._mask_name(name): "*" * len(text) if self._is_secret(name) else text if clean else self.mask_text(text)
            for name, text in texts.items()
        }

    def _mask_name(self, name: str) -> str:
        """Return a header's name with secrets masked; they are compared in lower case, as header names are."""
        for secret in self._lowered:
            name = name.replace(secret, "*" * len(secret))
        return name

    def _is_secret(self, name: str) -> bool:
        return name.lower() in self._headers or _has_secret_name(name)


def is_public_header(name: str) -> bool:
    """Return whether an extra header of this name is known to carry no secret."""
    return _PUBLIC_HEADERS.fullmatch(name.strip()) is not None


@functools.lru_cache(maxsize=1024)
def _has_secret_name(name: str) -> bool:
    return _SECRET_HEADERS.search(name) is not None


class _MaskerRegistry:
    """All secrets for which this process has built a masker."""

    def __init__(self) -> None:
        self._secrets: frozenset[str] = frozenset()
        self.masker = Masker(())

    def add(self, secrets: frozenset[str]) -> None:
        """Add secrets, and rebuild the masker if one of them is new."""
        if not secrets <= self._secrets:
            self._secrets |= secrets
            self.masker = Masker(self._secrets)


_registry = _MaskerRegistry()


def mask_known_secrets(text: str) -> str:
    """Mask every secret that `build_masker` received in this process.

    Use it for texts that belong to no endpoint, such as log records.
    """
    return _registry.masker.mask_text(text)


def build_masker(key: str, headers: Iterable[tuple[str, str]], addresses: Iterable[str] = ()) -> Masker:
    """Return the masker for an endpoint and register its secrets for `mask_known_secrets`.

    Its secrets are the key, the extra headers that are not public, and the secrets in its addresses.
    """
    secret = {name.lower(): value for name, value in headers if not is_public_header(name)}
    credentials = [value.partition(" ")[2].strip() for value in secret.values()]  # the part after "Bearer"
    in_addresses = [text for address in addresses for text in find_url_secrets(address)]
    secrets = frozenset((key, *secret.values(), *credentials, *in_addresses))
    _registry.add(secrets)
    return Masker(secrets, secret)
