"""All secrets that this installation knows now. What leaves the machine is searched for them once more."""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from toolbench.lab.credentials.keys import KeyUnavailable, endpoint_headers, endpoint_key
from toolbench.lab.credentials.provider_secrets import address_secrets
from toolbench.lab.models import Provider, ServiceAddress
from toolbench.providers.masking.secrets import Masker, is_public_header


@dataclass(frozen=True, slots=True)
class Redaction:
    """`unread` names the providers whose stored key cannot be unlocked now, so that it could not be searched for."""

    masker: Masker
    unread: tuple[str, ...]


def known_secrets(further: Iterable[str] = ()) -> Redaction:
    """Return a masker for the keys, secret headers and secret parts of addresses of all providers, the keys of the
    local servers, and `further` secrets."""
    secrets: list[str] = [*further]
    secrets += [key for key in ServiceAddress.objects.values_list("key", flat=True) if key]
    unread: list[str] = []
    for provider in Provider.objects.all():
        secrets += address_secrets(provider)
        try:
            secrets += _secrets_of(provider)
        except KeyUnavailable:
            if provider.key_source != Provider.KeySource.ENVIRONMENT or provider.key_env in os.environ:
                unread.append(provider.name)
    return Redaction(Masker(secrets), tuple(unread))


def _secrets_of(provider: Provider) -> list[str]:
    values = [str(value) for name, value in endpoint_headers(provider).items() if not is_public_header(name)]
    tokens = [value.partition(" ")[2].strip() for value in values]
    return [secret for secret in (endpoint_key(provider), *values, *tokens) if secret]
