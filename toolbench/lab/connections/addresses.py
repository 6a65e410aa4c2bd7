"""Addresses of providers: what may stand in one, and whether two lead to the same place."""

from urllib.parse import SplitResult, urlsplit

_PORTS = {"http": 80, "https": 443}
THIS_MACHINE = "127.0.0.1"
_ITS_NAMES = ("localhost", "::1", "0.0.0.0")


def address_trouble(text: str) -> str:
    """Why a base URL cannot be taken, as a sentence; "" for a good one. It is shown and kept with every step, so it
    may carry no secret."""
    parts = _split(text)
    if parts is None or parts.scheme not in _PORTS or not parts.hostname:
        return "The base URL begins with http:// or https:// and names a host."
    if "@" in parts.netloc or "?" in text or "#" in text:
        return "The base URL is shown and stored: a name, password or query cannot be part of it. Use key or headers."
    return ""


def prefix_trouble(text: str) -> str:
    """The same for what is put between base URL and path."""
    return "The prefix is a plain path, such as /v1." if set(text.strip()) & set("?#@ ") else ""


def same_place(one: str, other: str) -> bool:
    """Whether two base URLs have scheme, host and port in common, so that a secret for one may go to the other. This
    machine has several names."""
    places = [_place(one), _place(other)]
    return None not in places and places[0] == places[1]


def _place(text: str) -> tuple[str, str, int | None] | None:
    parts = _split(text)
    if parts is None or not parts.hostname:
        return None
    host = THIS_MACHINE if parts.hostname in _ITS_NAMES else parts.hostname
    return parts.scheme, host, parts.port or _PORTS.get(parts.scheme)


def _split(text: str) -> SplitResult | None:
    """None for what is no address at all; a port that is no number is only noticed when it is read."""
    try:
        parts = urlsplit(text.strip())
        return parts if parts.port != 0 else None
    except ValueError:
        return None
