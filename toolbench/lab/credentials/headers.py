"""Extra headers of a provider: their names are readable, their values are encrypted like its key."""

import json
from collections.abc import Collection

from toolbench.engine.types import JsonObject
from toolbench.lab.credentials.keys import encrypt, read_endpoint_headers
from toolbench.lab.models import Provider
from toolbench.providers.masking.secrets import is_public_header

HEADER_FIELDS = ("header_names", "headers_encrypted")


def list_kept_names(provider: Provider, given: Collection[str], removed: Collection[str]) -> tuple[str, ...]:
    """Return the stored headers that are neither given again nor removed. Upper and lower case are the same."""
    gone = {name.lower() for name in (*given, *removed)}
    return tuple(name for name in provider.header_names if name.lower() not in gone)


def list_secret_names(names: Collection[str]) -> tuple[str, ...]:
    """Return the headers that may carry a secret. They must not be sent to another host than they were entered for."""
    return tuple(name for name in names if not is_public_header(name))


def change_headers(provider: Provider, given: JsonObject, removed: Collection[str] = ()) -> None:
    """Set the HEADER_FIELDS of the row without saving it.

    Raises:
        KeyUnavailableError: the stored headers cannot be read.
    """
    if not given and not removed:
        return
    kept = list_kept_names(provider, given, removed)
    stored = read_endpoint_headers(provider) if kept else {}
    headers = {name: stored[name] for name in kept} | given
    provider.header_names = list(headers)
    provider.headers_encrypted = encrypt(json.dumps(headers)) if headers else None
