"""Links that sign in the owner."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from toolbench.lab.accounts.sign_in import create_token, redeem_token
from toolbench.lab.models import SignInLink

pytestmark = pytest.mark.django_db


def test_redeem_token_signs_owner_in_once() -> None:
    token = create_token()

    first, second = redeem_token(token), redeem_token(token)

    assert first is not None
    assert first.username == "owner"
    assert second is None


def test_redeem_token_after_expiry_returns_none() -> None:
    token = create_token()
    SignInLink.objects.update(expires_at=Now() - timedelta(seconds=1))

    assert redeem_token(token) is None


def test_redeem_token_unknown_returns_none() -> None:
    assert redeem_token("guessed") is None


def test_create_token_is_not_stored_in_plain_text() -> None:
    token = create_token()

    assert token not in repr(SignInLink.objects.values().get())


def test_redeem_token_accepts_two_open_links() -> None:
    one, other = create_token(), create_token()

    assert redeem_token(other) == redeem_token(one)
