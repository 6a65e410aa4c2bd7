"""Secrets of a provider and of the environment. Fields that pages show must not contain them."""

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress

from toolbench.lab.credentials.headers import list_secret_names
from toolbench.lab.credentials.keys import (
    KeyUnavailableError,
    read_endpoint_headers,
    read_endpoint_key,
    read_network_access,
)
from toolbench.lab.models import Provider
from toolbench.providers.masking.url_keys import find_url_secrets

_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)


def list_environment_secrets(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the values of variables whose names end in KEY, TOKEN, SECRET or PASSWORD, ignoring case."""
    return tuple(value.strip() for name, value in environment.items() if _SECRET_NAME.search(name) and value.strip())


def list_provider_secrets(provider: Provider, entered: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the secrets of the environment and of the provider, and those in `entered`.

    Those of the provider are its key, its secret headers and the password of its proxy, without any that cannot be
    read. A secret with white space is returned whole and in its parts.

    Args:
        provider: the provider.
        entered: further secrets, which a user has just entered.
    """
    secrets = [*list_environment_secrets(), *entered]
    with suppress(KeyUnavailableError):
        secrets.append(read_endpoint_key(provider))
    with suppress(KeyUnavailableError):
        headers = read_endpoint_headers(provider)
        secrets.extend(str(headers[name]) for name in list_secret_names(headers))
    with suppress(KeyUnavailableError):
        secrets.append(read_network_access(provider).proxy_login.partition(":")[2])
    return tuple(word for secret in secrets for word in {secret.strip(), *secret.split()} if word)


def list_url_secrets(provider: Provider) -> tuple[str, ...]:
    """Return possible secrets in the base URL and the prefix, which older versions allowed there."""
    return (*find_url_secrets(provider.base_url), *find_url_secrets(f"/{provider.api_prefix.strip('/')}"))
