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


def test_a_key_comes_back_as_it_was_and_is_not_readable_as_stored() -> None:
    stored = encrypt("sk-secret")
    assert b"secret" not in stored
    assert decrypt(stored) == "sk-secret"


def test_the_key_file_is_the_owners_alone_and_made_once(key_file: Path) -> None:
    encrypt("a")
    made = key_file.read_bytes()
    assert key_file.stat().st_mode & 0o777 == 0o600
    encrypt("b")
    assert key_file.read_bytes() == made
    assert list(key_file.parent.iterdir()) == [key_file]


@pytest.mark.parametrize("what", ["gone", "another", "garbage"])
def test_a_lost_key_file_is_said_with_what_to_do(key_file: Path, what: str) -> None:
    provider = make_provider("Mine", key_source="stored", key_encrypted=encrypt("sk"))
    key_file.unlink()
    if what == "another":
        encrypt("x")
    if what == "garbage":
        key_file.write_bytes(b"garbage")
    with pytest.raises(KeyFileLostError, match="Enter the key of Mine again") as error:
        read_endpoint_key(provider)
    assert f"on {socket.gethostname()}:" in str(error.value)


def test_a_key_of_the_environment_is_read_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = make_provider(key_source="environment", key_env="MY_KEY")
    with pytest.raises(KeyNotInEnvironmentError, match="no MY_KEY"):
        read_endpoint_key(provider)
    monkeypatch.setenv("MY_KEY", "sk-env")
    assert read_endpoint_key(provider) == "sk-env"


def test_a_provider_without_a_key_has_none() -> None:
    assert read_endpoint_key(make_provider()) == ""
