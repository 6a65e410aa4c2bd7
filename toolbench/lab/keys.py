"""Keys of providers: in the worker's environment, or encrypted in the database with a key kept in a file of mode 0600.

A key leaves this module only inside an Endpoint."""

import os
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

from toolbench.lab.models import Provider
from toolbench.private_files import make_once


class KeyUnavailable(Exception):
    """A provider's key that cannot be had; its text says what to do."""


class KeyFileLost(KeyUnavailable):
    """Stored keys cannot be read any more: the file with the key to them is gone, or is another one."""

    def __init__(self, provider: str) -> None:
        super().__init__(
            f"The file that unlocks stored keys is lost or was changed: enter the key of {provider} again."
        )


class KeyNotInEnvironment(KeyUnavailable):
    def __init__(self, variable: str) -> None:
        super().__init__(
            f"The worker's environment has no {variable}: set it and start the worker again, or store a key."
        )


def encrypt(key: str) -> bytes:
    """The key as it is stored. Makes the key file on first use."""
    return _box(make=True).encrypt(key.encode())


def decrypt(stored: bytes | memoryview) -> str:
    """Raises InvalidToken or FileNotFoundError when the key file is not the one it was stored with."""
    return _box(make=False).decrypt(bytes(stored)).decode()


def endpoint_key(provider: Provider) -> str:
    """The key to send, "" for none. Raises KeyUnavailable with what to do."""
    if provider.key_source == Provider.KeySource.ENVIRONMENT:
        key = os.environ.get(provider.key_env, "")
        if not key:
            raise KeyNotInEnvironment(provider.key_env)
        return key
    if provider.key_source != Provider.KeySource.STORED or provider.key_encrypted is None:
        return ""
    try:
        return decrypt(provider.key_encrypted)
    except (InvalidToken, FileNotFoundError, ValueError) as error:
        raise KeyFileLost(provider.name) from error


def _box(*, make: bool) -> Fernet:
    path = Path(settings.KEY_FILE)
    held = make_once(path, Fernet.generate_key) if make else path.read_bytes()
    return Fernet(held.strip())
