"""Extra headers of a provider. Their names are stored as text, their values encrypted like the key."""

import json
from collections.abc import Collection

from toolbench.engine.types import JsonObject
from toolbench.lab.credentials.keys import encrypt, read_endpoint_headers
from toolbench.lab.models import Provider
from toolbench.providers.masking.secrets import is_public_header

HEADER_FIELDS = ("header_names", "headers_encrypted")


def list_unchanged_names(provider: Provider, new: Collection[str], removed: Collection[str]) -> tuple[str, ...]:
    """Return the names of stored headers that are neither replaced by `new` nor removed, ignoring case."""
    changed_names = {name.lower() for name in (*new, *removed)}
    return tuple(name for name in provider.header_names if name.lower() not in changed_names)


def list_secret_names(names: Collection[str]) -> tuple[str, ...]:
    """Return the names of headers that may contain a secret.

    Only the host for which such a header was entered may receive it.
    """
    return tuple(name for name in names if not is_public_header(name))


def change_headers(provider: Provider, new: JsonObject, removed: Collection[str] = ()) -> None:
    """Set the fields in HEADER_FIELDS of the provider; the caller saves it.

    Args:
        provider: the provider.
        new: values of headers to add or replace, by name.
        removed: names of headers to delete.

    Raises:
        KeyUnavailableError: stored headers that are kept cannot be read.
    """
    if not new and not removed:
        return
    kept_names = list_unchanged_names(provider, new, removed)
    stored = read_endpoint_headers(provider) if kept_names else {}
    headers = {name: stored[name] for name in kept_names} | new
    provider.header_names = list(headers)
    provider.headers_encrypted = encrypt(json.dumps(headers)) if headers else None
