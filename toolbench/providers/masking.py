"""Overwriting known secrets before anything is kept, with as many bytes as they had."""

import functools
import re
from collections.abc import Iterable

from toolbench.engine.messages import JsonObject

SHORTEST_SECRET = 8  # a shorter key ("ollama") is also an ordinary word: it is masked in its header only

_SECRET_HEADER = re.compile(r"authorization|cookie|api[-_]?key|token|secret|password", re.IGNORECASE)
# Extra headers that say who asks and in what form; every other one may be a key, whatever its name.
_OPEN_HEADERS = re.compile(
    r"accept|accept-encoding|accept-language|anthropic-beta|anthropic-version|content-type|http-referer|openai-beta"
    r"|openai-organization|openai-project|referer|user-agent|x-title",
    re.IGNORECASE,
)
_ANY_ESCAPE = re.compile(rb"\\")


class Masker:
    """Knows the secrets of one endpoint, each also in JSON's escapes (nested ones too), where a text can be read in
    two ways. `headers` are the lower-case names of those that carry them."""

    def __init__(self, secrets: Iterable[str], headers: Iterable[str] = ()) -> None:
        self._headers = frozenset(headers)
        known = sorted({s for s in secrets if len(s) >= SHORTEST_SECRET}, key=len, reverse=True)
        self._plain = tuple(secret.encode("utf-8", "surrogatepass") for secret in known)
        self._trigger = escapes_of(known) if all(map(_is_ordinary, known)) else _ANY_ESCAPE
        self._escaped = re.compile(b"|".join(_escaped(secret) for secret in known)) if known else None

    def mask(self, data: bytes) -> bytes:
        """`data` itself when it holds no secret, else a copy of the same length."""
        for secret in self._plain:
            if secret in data:
                data = data.replace(secret, b"*" * len(secret))
        if self._escaped is not None and self._trigger.search(data):
            data = self._escaped.sub(_stars, data)
        return data

    def mask_text(self, text: str) -> str:
        return self.mask(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def mask_headers(self, headers: JsonObject) -> JsonObject:
        """A copy in which headers that carry secrets are overwritten whole: those of this endpoint, and what a name
        gives away."""
        texts = {name: str(value) for name, value in headers.items()}
        together = "\n".join(texts.values()).encode("utf-8", "surrogatepass")
        clean = self.mask(together) is together
        return {
            name: "*" * len(text) if self._is_secret(name) else text if clean else self.mask_text(text)
            for name, text in texts.items()
        }

    def _is_secret(self, name: str) -> bool:
        return name.lower() in self._headers or _named_secret(name)


def is_open(name: str) -> bool:
    """Whether a header of this name is known to carry no secret when a person adds it."""
    return _OPEN_HEADERS.fullmatch(name.strip()) is not None


@functools.lru_cache(maxsize=1024)
def _named_secret(name: str) -> bool:
    return _SECRET_HEADER.search(name) is not None


def _is_ordinary(secret: str) -> bool:
    return secret.isascii() and not set(secret) & {'"', "\\"}


def escapes_of(secrets: Iterable[str]) -> re.Pattern[bytes]:
    """Return a pattern for the escapes that can stand for a character of ordinary secrets.

    A body without such an escape, and most have none, needs no search for escaped secrets."""
    characters = sorted(set().union(*secrets))
    codes = "|".join(f"{ord(character):02x}" for character in characters)
    return re.compile(rb"\\(?:u00(?i:%s)%s)" % (codes.encode(), b"|/" if "/" in characters else b""))


def _stars(match: re.Match[bytes]) -> bytes:
    return b"*" * len(match.group())


def _escaped(secret: str) -> bytes:
    """Return a pattern for the secret with any of its characters written as a JSON escape.

    Each way to write a character begins with one byte: so the search jumps to where a secret can begin."""
    return b"".join(_spellings(character) for character in secret)


def _spellings(character: str) -> bytes:
    plain = re.escape(character.encode("utf-8", "surrogatepass"))
    units = character.encode("utf-16-be", "surrogatepass")
    escapes = b"".join(rb"\\\\{0,3}u(?i:%s)" % units[at : at + 2].hex().encode() for at in range(0, len(units), 2))
    return rb"(?:%s|%s|\\\\{0,3}%s)" % (plain, escapes, plain)


def masker_for(key: str, headers: Iterable[tuple[str, str]]) -> Masker:
    """The masker for an endpoint's key and for what its extra headers carry, but for those known to be no secret."""
    secret = {name.lower(): value for name, value in headers if not is_open(name)}
    credentials = [value.partition(" ")[2].strip() for value in secret.values()]  # what follows "Bearer"
    return Masker([key, *secret.values(), *credentials], secret)
