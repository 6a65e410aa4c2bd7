"""Page of API tokens: creation, secret shown once, revocation."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.page_html import read_html
from toolbench.lab.models import ApiToken, AuditEntry

pytestmark = pytest.mark.django_db


def make_token(client: Client, **fields: object) -> str:
    values = {"name": "ci", "days": "30", "scopes": ["read", "launch"]} | fields
    return read_html(client.post("/settings/tokens/", values))


def test_tokens_page_shows_secret_once_and_stores_only_hash(owner_client: Client, client: Client) -> None:
    found = re.search(r"tb_[\w-]{43}", make_token(owner_client))
    assert found is not None
    secret = found[0]
    assert client.get("/api/v1/runs", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    page = read_html(owner_client.get("/settings/tokens/"))
    assert secret not in page
    assert secret[:9] in page
    assert secret not in str(ApiToken.objects.values().get())
    assert [str(entry) for entry in AuditEntry.objects.all()] == [
        f"owner added token ci ({secret[:9]}…) with read, launch"
    ]


def test_tokens_page_lets_viewer_make_only_reading_token(client: Client) -> None:
    client.force_login(User.objects.create(username="ana"))
    assert 'value="launch"' not in read_html(client.get("/settings/tokens/"))
    assert "cannot give the scope launch" in make_token(client)
    assert "Copy the token" in make_token(client, scopes=["read"])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": " "}, "Enter a name"),
        ({"scopes": []}, "at least one scope"),
        ({"scopes": ["everything"]}, "cannot give the scope everything"),
        ({"days": "12"}, "or no expiry"),
        ({"days": "x"}, "or no expiry"),
    ],
)
def test_tokens_page_explains_invalid_token(owner_client: Client, fields: dict[str, object], words: str) -> None:
    assert words in make_token(owner_client, **fields)
    assert not ApiToken.objects.exists()


def test_tokens_page_revokes_token_only_for_its_user(owner_client: Client, client: Client) -> None:
    make_token(owner_client)
    token = ApiToken.objects.get()
    client.force_login(User.objects.create(username="ana", is_superuser=True))
    assert "You have no such token" in read_html(client.post(f"/settings/tokens/{token.pk}/revoke/", follow=True))
    page = read_html(owner_client.post(f"/settings/tokens/{token.pk}/revoke/", follow=True))
    assert "Requests with it are refused from now on" in page
    assert "no such token" in read_html(owner_client.post(f"/settings/tokens/{token.pk}/revoke/", follow=True))
    assert AuditEntry.objects.order_by("pk").values_list("action", flat=True).last() == "revoked"
