"""Addresses of providers: what may stand in one, and whether two lead to the same place."""

from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

from toolbench.lab.credentials.provider_secrets import environment_secrets
from toolbench.providers.masking.url_keys import find_keys, mask_address

REFUSED = (
    "The {what} is shown and stored, so {held} cannot be part of it: put the key into the key field, its variable or "
    "an extra header."
)

_PORTS = {"http": 80, "https": 443}
THIS_MACHINE = "127.0.0.1"
_ITS_NAMES = ("localhost", "::1", "0.0.0.0")


def address_trouble(text: str, known: Iterable[str] = ()) -> str:
    """Return why a base URL cannot be taken, as a sentence; "" for a good one. It is shown and kept with every step, so
    it may carry no secret. Args: known: secrets that it may not hold, whatever their shape."""
    parts = _split(text)
    if parts is None or parts.scheme not in _PORTS or not parts.hostname:
        return "The base URL begins with http:// or https:// and names a host."
    return _secret_trouble("base URL", text, "@" in parts.netloc, known)


def prefix_trouble(text: str, known: Iterable[str] = ()) -> str:
    """Return the same for what is put between base URL and path."""
    if trouble := _secret_trouble("prefix", text, "@" in text, known):
        return trouble
    return "The prefix is a plain path, such as /v1." if " " in text.strip() else ""


def _secret_trouble(what: str, text: str, names_a_user: bool, known: Iterable[str]) -> str:
    found = {"a user name or password": names_a_user, "a query": "?" in text, "a fragment": "#" in text}
    found["what looks like a key in its path"] = bool(find_keys(text.strip(), known))
    held = next((name for name, there in found.items() if there), "")
    return REFUSED.format(what=what, held=held) if held else ""


def shown_address(text: str, known: Iterable[str] = ()) -> str:
    """Return a stored base URL as a page or file may show it: what is refused today stands there as stars."""
    return mask_address(text, (*environment_secrets(), *known))


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
