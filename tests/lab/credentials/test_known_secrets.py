import json

import pytest

from tests.factories import make_provider
from toolbench.lab.credentials.keys import encrypt
from toolbench.lab.credentials.known_secrets import load_known_secrets

pytestmark = pytest.mark.django_db


def test_load_known_secrets_masks_key_although_headers_are_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET_KEY", "key-secret-1234")
    make_provider("Mine", key_source="environment", key_env="SET_KEY", headers_encrypted=b"of a lost key file")
    loaded = load_known_secrets()
    assert loaded.masker.mask_text("a key-secret-1234 b") == f"a {'*' * 15} b"
    assert loaded.unreadable_providers == ("Mine",)


def test_load_known_secrets_without_key_variable_masks_stored_header() -> None:
    headers = {"X-Tenant": "tenant-secret-1234"}
    make_provider(
        key_source="environment",
        key_env="UNSET_KEY",
        header_names=list(headers),
        headers_encrypted=encrypt(json.dumps(headers)),
    )
    loaded = load_known_secrets()
    assert loaded.masker.mask_text("a tenant-secret-1234 b") == f"a {'*' * 18} b"
    assert loaded.unreadable_providers == ()


def test_load_known_secrets_masks_each_line_of_a_private_key() -> None:
    key_lines = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "Q2lsZW50IGtleSBvZiBhIHRlc3QgMTIz"]
    client_key = "\n".join(["-----BEGIN PRIVATE KEY-----", *key_lines, "-----END PRIVATE KEY-----"])
    make_provider(network_encrypted=encrypt(json.dumps({"client_key": client_key})))
    masker = load_known_secrets().masker
    assert [masker.mask_text(f"read: {line}") for line in key_lines] == [f"read: {'*' * 32}"] * 2
    assert masker.mask_text("-----BEGIN PRIVATE KEY-----") == "-----BEGIN PRIVATE KEY-----"
