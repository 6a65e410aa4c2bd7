"""Secrets of all providers and local servers, to mask them in data that leaves the machine."""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from toolbench.lab.credentials.keys import (
    KeyNotInEnvironmentError,
    KeyUnavailableError,
    read_endpoint_headers,
    read_endpoint_key,
    read_network_access,
)
from toolbench.lab.credentials.provider_secrets import list_url_secrets
from toolbench.lab.models import Provider, ServiceAddress
from toolbench.providers.masking.secrets import Masker, is_public_header

MIN_KEY_LINE_CHARS = 16  # a shorter line of a private key, such as its last one, may occur elsewhere by chance


@dataclass(frozen=True, slots=True)
class LoadedMasker:
    """Masker of the secrets that could be read, and the providers with a secret that could not.

    Attributes:
        unreadable_providers: names of the providers with a secret that the masker lacks. A provider whose key variable
            is not set is not listed, since this process has no key to mask.
    """

    masker: Masker
    unreadable_providers: tuple[str, ...]


def load_known_secrets(extra_secrets: Iterable[str] = ()) -> LoadedMasker:
    """Load the masker of all secrets that can be read.

    The secrets are: keys, secret headers, proxy logins, private keys and secrets in URLs of all providers; keys of
    local servers; and `extra_secrets`.
    """
    secrets: list[str] = [*extra_secrets]
    secrets += [key for key in ServiceAddress.objects.values_list("key", flat=True) if key]
    unreadable_providers: list[str] = []
    for provider in Provider.objects.all():
        secrets += list_url_secrets(provider)
        is_readable = True
        for list_secrets in (_list_stored_secrets, _list_key):  # each may be readable without the other
            try:
                secrets += list_secrets(provider)
            except KeyUnavailableError:
                is_readable = False
        if not is_readable:
            unreadable_providers.append(provider.name)
    return LoadedMasker(Masker(secrets), tuple(unreadable_providers))


def _list_key(provider: Provider) -> list[str]:
    """Return the key, or [] if its environment variable is not set.

    Raises:
        KeyUnavailableError: the stored key cannot be decrypted, or the variable is set but empty.
    """
    try:
        return [read_endpoint_key(provider)]
    except KeyNotInEnvironmentError:
        if provider.key_env in os.environ:
            raise
        return []


def _list_stored_secrets(provider: Provider) -> list[str]:
    """Return the secret headers, the proxy login and the private key, whole and in parts; some may be "".

    Raises:
        KeyUnavailableError: the headers, the login or the private key cannot be decrypted.
    """
    values = [str(value) for name, value in read_endpoint_headers(provider).items() if not is_public_header(name)]
    # A body may contain the token of a header without its scheme, such as Bearer.
    tokens = [value.partition(" ")[2].strip() for value in values]
    network = read_network_access(provider)
    # A log is searched line by line, and a private key in PEM has many lines.
    key_lines = [line for line in network.certificate_key.splitlines() if len(line) >= MIN_KEY_LINE_CHARS]
    key_lines = [line for line in key_lines if not line.startswith("-----")]
    password = network.proxy_login.partition(":")[2]
    return [*values, *tokens, network.proxy_login, password, network.certificate_key, *key_lines]
