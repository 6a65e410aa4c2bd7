"""Checks of providers' URLs: validity, secrets in them, and whether two have the same origin."""

from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

from toolbench.lab.credentials.provider_secrets import list_environment_secrets
from toolbench.providers.masking.url_keys import find_keys, mask_address

REFUSED_TEXT = (
    "The {what} is shown and stored, so {held} cannot be part of it: put the key into the key field, its variable or "
    "an extra header."
)

_DEFAULT_PORTS = {"http": 80, "https": 443}
LOOPBACK_HOST = "127.0.0.1"
_LOOPBACK_NAMES = ("localhost", "::1", "0.0.0.0")


def find_url_error(text: str, known: Iterable[str] = ()) -> str:
    """Return why a base URL is invalid; "" if it is valid.

    It is shown and stored with every step, so it must not have a secret. `known` are secrets that it must not have in
    any form.
    """
    parts = _split_url(text)
    if parts is None or parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        return "The base URL begins with http:// or https:// and names a host."
    return _find_secret_error("base URL", text, "@" in parts.netloc, known)


def find_prefix_error(text: str, known: Iterable[str] = ()) -> str:
    """Return why the prefix between base URL and path is invalid; "" if it is valid.

    `known` are secrets that it must not have in any form.
    """
    if trouble := _find_secret_error("prefix", text, "@" in text, known):
        return trouble
    return "The prefix is a plain path, such as /v1." if " " in text.strip() else ""


def _find_secret_error(url_name: str, text: str, names_a_user: bool, known: Iterable[str]) -> str:
    found = {"a user name or password": names_a_user, "a query": "?" in text, "a fragment": "#" in text}
    found["what looks like a key in its path"] = bool(find_keys(text.strip(), known))
    held = next((name for name, there in found.items() if there), "")
    return REFUSED_TEXT.format(what=url_name, held=held) if held else ""


def mask_provider_url(text: str, known: Iterable[str] = ()) -> str:
    """Return a stored base URL for a page or file, with everything that may be a secret overwritten."""
    return mask_address(text, (*list_environment_secrets(), *known))


def is_same_origin(first: str, second: str) -> bool:
    """Return whether two base URLs have the same scheme, host and port.

    Only then may a secret for one be sent to the other. All loopback names are the same host.
    """
    places = [_parse_origin(first), _parse_origin(second)]
    return None not in places and places[0] == places[1]


def _parse_origin(text: str) -> tuple[str, str, int | None] | None:
    parts = _split_url(text)
    if parts is None or not parts.hostname:
        return None
    host = LOOPBACK_HOST if parts.hostname in _LOOPBACK_NAMES else parts.hostname
    return parts.scheme, host, parts.port or _DEFAULT_PORTS.get(parts.scheme)


def _split_url(text: str) -> SplitResult | None:
    """Return the parts of a URL; None if it cannot be parsed or its port is not from 1 to 65535.

    The port is read here, because only reading it raises ValueError for an invalid one.
    """
    try:
        parts = urlsplit(text.strip())
        return parts if parts.port != 0 else None
    except ValueError:
        return None
