"""All secrets that this installation knows. Everything that leaves the machine is searched for them once more."""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from toolbench.lab.credentials.keys import (
    KeyUnavailableError,
    read_endpoint_headers,
    read_endpoint_key,
    read_network_access,
)
from toolbench.lab.credentials.provider_secrets import list_url_secrets
from toolbench.lab.models import Provider, ServiceAddress
from toolbench.providers.masking.secrets import Masker, is_public_header


@dataclass(frozen=True, slots=True)
class KnownSecrets:
    """The masker of all known secrets.

    Attributes:
        unread: providers whose stored key cannot be decrypted, so that it was not searched for.
    """

    masker: Masker
    unread: tuple[str, ...]


def load_known_secrets(further: Iterable[str] = ()) -> KnownSecrets:
    """Return a masker for all known secrets.

    These are the keys, secret headers, logins of proxies, private keys and secret parts of addresses of all providers,
    the keys of local servers, and
    `further` secrets.
    """
    secrets: list[str] = [*further]
    secrets += [key for key in ServiceAddress.objects.values_list("key", flat=True) if key]
    unread: list[str] = []
    for provider in Provider.objects.all():
        secrets += list_url_secrets(provider)
        try:
            secrets += _list_endpoint_secrets(provider)
        except KeyUnavailableError:
            if provider.key_source != Provider.KeySource.ENVIRONMENT or provider.key_env in os.environ:
                unread.append(provider.name)
    return KnownSecrets(Masker(secrets), tuple(unread))


def _list_endpoint_secrets(provider: Provider) -> list[str]:
    values = [str(value) for name, value in read_endpoint_headers(provider).items() if not is_public_header(name)]
    tokens = [value.partition(" ")[2].strip() for value in values]
    network = read_network_access(provider)
    values += [network.proxy_login, network.proxy_login.partition(":")[2], network.certificate_key]
    return [secret for secret in (read_endpoint_key(provider), *values, *tokens) if secret]
