"""Masking of known secrets in everything that is stored or shown.

Each secret is overwritten by as many other characters.
"""

import re
import threading
from collections.abc import Iterable
from typing import TypeVar

from toolbench.engine.types import JsonObject
from toolbench.providers.masking.body_texts import extract_texts
from toolbench.providers.masking.spellings import MIN_SECRET_CHARS, SecretSpellings, overwrite
from toolbench.providers.masking.split_texts import join_split_texts
from toolbench.providers.masking.url_keys import find_url_secrets
from toolbench.providers.masking.values import collect_texts, map_texts

Value = TypeVar("Value")

_MAX_HEADER_NAMES = 512  # header names that one masker caches
_SECRET_HEADERS = re.compile(r"authorization|cookie|api[-_]?key|token|secret|password", re.IGNORECASE)
_RATE_LIMIT_HEADERS = re.compile(r"rate-?limit", re.IGNORECASE)  # counts and times of requests and tokens, no secrets
# Extra headers that identify the client or a format. Any other extra header may hold a key.
_PUBLIC_HEADERS = re.compile(
    r"accept|accept-encoding|accept-language|anthropic-beta|anthropic-version|content-type|http-referer|openai-beta"
    r"|openai-organization|openai-project|referer|user-agent|x-title",
    re.IGNORECASE,
)


class Masker:
    """Masker of a set of secrets in every spelling of `SecretSpellings`.

    Secrets shorter than `MIN_SECRET_CHARS` are masked only in their headers. A masker without longer secrets is false.
    """

    def __init__(self, secrets: Iterable[str], secret_headers: Iterable[str] = ()) -> None:
        """Build a masker.

        Args:
            secrets: the secrets, of any length.
            secret_headers: lower-case names of headers that carry secrets.
        """
        self._secret_headers = frozenset(secret_headers)
        long_secrets = {secret for secret in secrets if len(secret) >= MIN_SECRET_CHARS}
        self._spellings = SecretSpellings(sorted(long_secrets))
        self._header_names: dict[str, tuple[str, bool]] = {}
        self._lower_case_secrets = sorted({secret.lower() for secret in long_secrets}, key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._spellings)

    def mask(self, data: bytes) -> bytes:
        """Return `data` itself if it holds no secret, else a masked copy of the same length."""
        if not self._spellings.has_match(data):
            return data
        return overwrite(data, self._spellings.find_spans(data))

    def mask_body(self, data: bytes, *, join_parts: bool = True) -> bytes:
        """Mask a body so that JSON stays valid and a stream keeps its events.

        Args:
            data: JSON, an event stream or any other body.
            join_parts: whether to mask also a secret whose parts are in several events of a stream or in several texts
                with the same field name.

        Returns:
            `data` itself if it holds no secret, else a masked copy of the same length.
        """
        if not self._spellings or not (
            self._spellings.has_match(data) or (join_parts and self._has_split_secret(data))
        ):
            return data
        texts = extract_texts(data)
        masked = overwrite(data, texts.map_to_body(self._spellings.find_spans(texts.joined)))
        secret_number_spans = [span for span in texts.number_spans if self._spellings.has_match(data[slice(*span)])]
        return self.mask(overwrite(masked, secret_number_spans, b"1"))  # digits keep a number valid

    def _has_split_secret(self, data: bytes) -> bool:
        joined = join_split_texts(data)
        return self._spellings.has_match(extract_texts(data).joined if joined is None else joined)

    def mask_text(self, text: str) -> str:
        """Return the text with secrets masked."""
        return self.mask(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def mask_value(self, value: Value) -> Value:
        """Return `value` itself if no text in it holds a secret, else a masked copy.

        Args:
            value: JSON, a dataclass, or tuples of these.
        """
        if not self._spellings or not self._spellings.has_match(collect_texts(value).encode("utf-8", "surrogatepass")):
            return value
        return map_texts(value, self.mask_text)

    def split_at_secret(self, text: str) -> tuple[str, str]:
        """Mask the text and split it where its end may be the beginning of a secret.

        Returns:
            The text before that point, which may be shown, and the text after it.
        """
        encoded = self.mask_text(text).encode("utf-8", "surrogatepass")
        position = self._spellings.find_partial_start(encoded)
        shown, held = encoded[:position], encoded[position:]
        return shown.decode("utf-8", "surrogatepass"), held.decode("utf-8", "surrogatepass")

    def mask_headers(self, headers: JsonObject) -> JsonObject:
        """Return a copy of the headers with secrets masked in their names and values.

        The whole value is masked if the header is one of the masker's secret headers or its name indicates a secret.
        """
        texts = [(self._classify_header(name), str(value)) for name, value in headers.items()]
        joined = "\n".join([text for _, text in texts]).encode("utf-8", "surrogatepass")
        has_no_secret = self.mask(joined) is joined
        return {
            name: "*" * len(text) if is_secret else text if has_no_secret else self.mask_text(text)
            for (name, is_secret), text in texts
        }

    def _classify_header(self, name: str) -> tuple[str, bool]:
        """Return the masked name of a header and whether its whole value is a secret."""
        entry = self._header_names.get(name)
        if entry is None:
            entry = self._mask_header_name(name), name.lower() in self._secret_headers or _has_secret_name(name)
            if len(self._header_names) < _MAX_HEADER_NAMES:
                self._header_names[name] = entry
        return entry

    def _mask_header_name(self, name: str) -> str:
        """Mask the secrets in the name of a header. The name is in lower case, and so is a secret in it."""
        for secret in self._lower_case_secrets:
            name = name.replace(secret, "*" * len(secret))
        return name


def is_public_header(name: str) -> bool:
    """Return whether an extra header of this name is known to carry no secret."""
    return _PUBLIC_HEADERS.fullmatch(name.strip()) is not None


def _has_secret_name(name: str) -> bool:
    return _SECRET_HEADERS.search(name) is not None and _RATE_LIMIT_HEADERS.search(name) is None


class _MaskerRegistry:
    """Registry of all secrets for which this process has built a masker, with a masker for them. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: frozenset[str] = frozenset()
        self.masker = Masker(())

    def add(self, secrets: frozenset[str]) -> None:
        """Add secrets, and rebuild the masker if one of them is new."""
        if secrets <= self._secrets:
            return
        with self._lock:
            self._secrets |= secrets
            self.masker = Masker(self._secrets)


_registry = _MaskerRegistry()


def mask_known_secrets(text: str) -> str:
    """Mask the secrets that `build_masker` received in this process.

    Secrets shorter than `MIN_SECRET_CHARS` are not masked. Use this function for texts that belong to no endpoint, such
    as log records.
    """
    return _registry.masker.mask_text(text)


def build_masker(key: str, headers: Iterable[tuple[str, str]], addresses: Iterable[str] = ()) -> Masker:
    """Build the masker for an endpoint and register its secrets for `mask_known_secrets`.

    Args:
        key: the API key, "" for none.
        headers: (name, value) of extra headers; the values of those that are not public are secrets.
        addresses: addresses of the endpoint, which may contain secrets.
    """
    # A list, since a name may occur twice: as an extra header and as the header of the key.
    secret_headers = [(name.lower(), value) for name, value in headers if not is_public_header(name)]
    values = [value for _, value in secret_headers]
    credentials = [value.partition(" ")[2].strip() for value in values]  # the part after "Bearer"
    address_secrets = [secret for address in addresses for secret in find_url_secrets(address)]
    secrets = frozenset((key, *values, *credentials, *address_secrets))
    _registry.add(secrets)
    return Masker(secrets, {name for name, _ in secret_headers})
