"""Secrets are masked before a step is stored; what leaves the machine is searched once more for every key known now."""

import os
from dataclasses import dataclass

from toolbench.lab.models import Provider, ServiceAddress
from toolbench.lab.secrets.keys import KeyUnavailable, endpoint_headers, endpoint_key
from toolbench.providers.masking import Masker, is_open


@dataclass(frozen=True, slots=True)
class Redaction:
    """`unread` names the providers whose stored key cannot be unlocked now, so that it could not be searched for."""

    masker: Masker
    unread: tuple[str, ...]


def known_secrets() -> Redaction:
    """Keys and secret headers of all providers, and of the local servers."""
    secrets: list[str] = [key for key in ServiceAddress.objects.values_list("key", flat=True) if key]
    unread: list[str] = []
    for provider in Provider.objects.all():
        try:
            secrets += _secrets_of(provider)
        except KeyUnavailable:
            if provider.key_source != Provider.KeySource.ENVIRONMENT or provider.key_env in os.environ:
                unread.append(provider.name)
    return Redaction(Masker(secrets), tuple(unread))


def _secrets_of(provider: Provider) -> list[str]:
    values = [str(value) for name, value in endpoint_headers(provider).items() if not is_open(name)]
    tokens = [value.partition(" ")[2].strip() for value in values]
    return [secret for secret in (endpoint_key(provider), *values, *tokens) if secret]
