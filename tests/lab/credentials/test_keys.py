import socket
from pathlib import Path

import pytest
from django.conf import settings

from tests.factories import make_provider
from toolbench.lab.credentials.keys import (
    KeyFileLostError,
    KeyNotInEnvironmentError,
    decrypt,
    encrypt,
    read_endpoint_key,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "below" / "keys.key"
    monkeypatch.setattr(settings, "KEY_FILE", path)
    return path


def test_encrypt_hides_key_and_decrypt_restores_it() -> None:
    stored = encrypt("sk-secret")
    assert b"secret" not in stored
    assert decrypt(stored) == "sk-secret"


def test_encrypt_creates_key_file_once_for_owner_only(key_file: Path) -> None:
    encrypt("a")
    made = key_file.read_bytes()
    assert key_file.stat().st_mode & 0o777 == 0o600
    encrypt("b")
    assert key_file.read_bytes() == made
    assert list(key_file.parent.iterdir()) == [key_file]


@pytest.mark.parametrize("fault", ["gone", "another", "garbage"])
def test_read_endpoint_key_with_lost_key_file_says_what_to_do(key_file: Path, fault: str) -> None:
    provider = make_provider("Mine", key_source="stored", key_encrypted=encrypt("sk"))
    key_file.unlink()
    if fault == "another":
        encrypt("x")
    if fault == "garbage":
        key_file.write_bytes(b"garbage")
    with pytest.raises(KeyFileLostError, match="Enter the key of Mine again") as error:
        read_endpoint_key(provider)
    assert f"on {socket.gethostname()}:" in str(error.value)


def test_read_endpoint_key_reads_environment_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = make_provider(key_source="environment", key_env="MY_KEY")
    with pytest.raises(KeyNotInEnvironmentError, match="no MY_KEY"):
        read_endpoint_key(provider)
    monkeypatch.setenv("MY_KEY", "sk-env")
    assert read_endpoint_key(provider) == "sk-env"


def test_read_endpoint_key_of_provider_without_key_is_empty() -> None:
    assert read_endpoint_key(make_provider()) == ""
