"""Checks of providers' URLs (validity, secrets, same origin) and masking of stored ones."""

from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

from toolbench.lab.credentials.provider_secrets import list_environment_secrets
from toolbench.providers.masking.url_keys import find_keys, mask_address

REFUSED_TEXT = (
    "The {url_name} is shown and stored, so it cannot contain {part}: put the key into the key field, its variable or "
    "an extra header."
)

_DEFAULT_PORTS = {"http": 80, "https": 443}
LOOPBACK_HOST = "127.0.0.1"
_LOOPBACK_NAMES = ("localhost", "::1", "0.0.0.0")


def find_url_error(text: str, known_secrets: Iterable[str] = ()) -> str:
    """Return why a base URL is invalid; "" if it is valid.

    Pages show the URL and every step stores it, so it must not contain a secret.

    Args:
        text: the base URL.
        known_secrets: secrets of the provider, which the URL must not contain, plain or percent-encoded.
    """
    if not text.strip():
        return "Enter the address, such as http://127.0.0.1:8000."
    parts = _split_url(text)
    if parts is None or parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        return "The address is invalid: it must begin with http:// or https:// and contain a host."
    return _find_secret_error("address", text, "@" in parts.netloc, known_secrets)


def find_prefix_error(text: str, known_secrets: Iterable[str] = ()) -> str:
    """Return why the prefix between the base URL and the paths of the API is invalid; "" if it is valid.

    Args:
        text: the prefix.
        known_secrets: secrets of the provider, which the prefix must not contain, plain or percent-encoded.
    """
    if error := _find_secret_error("prefix", text, "@" in text, known_secrets):
        return error
    return "The prefix contains a space: enter a plain path, such as /v1." if " " in text.strip() else ""


def _find_secret_error(url_name: str, text: str, has_user: bool, known_secrets: Iterable[str]) -> str:
    has_part = {"a user name or password": has_user, "a query": "?" in text, "a fragment": "#" in text}
    has_part["a probable key in its path"] = bool(find_keys(text.strip(), known_secrets))
    part = next((name for name, is_present in has_part.items() if is_present), "")
    return REFUSED_TEXT.format(url_name=url_name, part=part) if part else ""


def mask_provider_url(text: str, known_secrets: Iterable[str] = ()) -> str:
    """Return a stored base URL for a page or file, with every part masked that may be a secret."""
    return mask_address(text, (*list_environment_secrets(), *known_secrets))


def is_same_origin(first: str, second: str) -> bool:
    """Return whether two base URLs have the same scheme, host and port.

    Only then may a secret that was entered for one be sent to the other. All loopback names count as the same host.
    """
    origins = [_parse_origin(first), _parse_origin(second)]
    return None not in origins and origins[0] == origins[1]


def _parse_origin(text: str) -> tuple[str, str, int | None] | None:
    parts = _split_url(text)
    if parts is None or not parts.hostname:
        return None
    host = LOOPBACK_HOST if parts.hostname in _LOOPBACK_NAMES else parts.hostname
    return parts.scheme, host, parts.port or _DEFAULT_PORTS.get(parts.scheme)


def _split_url(text: str) -> SplitResult | None:
    """Return the parts of a URL; None if it cannot be parsed or its port is not from 1 to 65535.

    `urlsplit` accepts an invalid port; reading the port raises the ValueError.
    """
    try:
        parts = urlsplit(text.strip())
        return parts if parts.port != 0 else None
    except ValueError:
        return None
