"""Reading and encryption of the secrets of providers.

An API key comes from the environment of the process that uses it, or is encrypted in the database. Extra headers, the
login of a proxy and the private key of a client certificate are encrypted too. The encryption key is in the file
settings.KEY_FILE, which has mode 0600.
"""

import json
import os
import socket
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

from toolbench.engine.types import JsonObject
from toolbench.lab.models import Provider
from toolbench.private_files import create_once
from toolbench.providers.endpoint import NetworkAccess


class KeyUnavailableError(Exception):
    """Raised if a secret of a provider cannot be read; the message says what to do."""


class KeyFileLostError(KeyUnavailableError):
    """Raised if a stored secret cannot be decrypted, because the key file is missing or has changed.

    Args:
        provider: name of the provider.
        description: the secret in words, such as "key".
    """

    def __init__(self, provider: str, description: str) -> None:
        super().__init__(
            f"Stored keys cannot be decrypted on {socket.gethostname()}: the key file is missing or has changed. "
            f"Enter the {description} of {provider} again."
        )


class KeyNotInEnvironmentError(KeyUnavailableError):
    """Raised if the variable of a key is not set or is empty in the environment of this process."""

    def __init__(self, variable: str) -> None:
        super().__init__(
            f"The environment on {socket.gethostname()} has no {variable}: set it and start Toolbench again, "
            "or store a key."
        )


def encrypt(secret: str) -> bytes:
    """Encrypt a secret for the database; create the key file if it does not exist.

    Raises:
        ValueError: the key file contains no valid key.
    """
    return Fernet(ensure_key_file().strip()).encrypt(secret.encode())


def ensure_key_file() -> bytes:
    """Create the key file if it does not exist; return its content."""
    return create_once(Path(settings.KEY_FILE), Fernet.generate_key)


def decrypt(stored: bytes | memoryview) -> str:
    """Decrypt a stored secret.

    Raises:
        InvalidToken: the secret was encrypted with another key file.
        FileNotFoundError: there is no key file.
        ValueError: the key file contains no valid key.
    """
    file_key = Path(settings.KEY_FILE).read_bytes()
    return Fernet(file_key.strip()).decrypt(bytes(stored)).decode()


def read_endpoint_key(provider: Provider) -> str:
    """Return the API key of a provider; "" if it has none.

    Raises:
        KeyUnavailableError: the key cannot be read.
    """
    if provider.key_source == Provider.KeySource.ENVIRONMENT:
        key = os.environ.get(provider.key_env, "")
        if not key:
            raise KeyNotInEnvironmentError(provider.key_env)
        return key
    if provider.key_source != Provider.KeySource.STORED or provider.key_encrypted is None:
        return ""
    return _decrypt_for_provider(provider.key_encrypted, provider, "key")


def read_endpoint_headers(provider: Provider) -> JsonObject:
    """Return the extra headers of a provider, their values by name; {} if it has none.

    Raises:
        KeyUnavailableError: the headers cannot be read.
    """
    if provider.headers_encrypted is None:
        return {}
    return dict(json.loads(_decrypt_for_provider(provider.headers_encrypted, provider, "extra headers")))


def read_network_access(provider: Provider) -> NetworkAccess:
    """Return the proxy and the certificates of a provider; a missing value is "".

    Raises:
        KeyUnavailableError: the login of the proxy or the private key cannot be read.
    """
    secrets: JsonObject = {}
    if provider.network_encrypted is not None:
        description = "login of the proxy and the private key of the client certificate"
        secrets = dict(json.loads(_decrypt_for_provider(provider.network_encrypted, provider, description)))
    return NetworkAccess(
        proxy=provider.proxy_url,
        proxy_login=secrets.get("proxy_login", ""),
        ca=provider.ca_pem,
        certificate=provider.client_certificate,
        certificate_key=secrets.get("client_key", ""),
    )


def _decrypt_for_provider(stored: bytes | memoryview, provider: Provider, description: str) -> str:
    try:
        return decrypt(stored)
    except (InvalidToken, FileNotFoundError, ValueError) as error:
        raise KeyFileLostError(provider.name, description) from error
