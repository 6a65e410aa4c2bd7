"""Links that sign in the owner."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from toolbench.lab.accounts.sign_in import create_token, redeem_token
from toolbench.lab.models import SignInLink

pytestmark = pytest.mark.django_db


def test_a_link_lets_the_owner_in_once() -> None:
    token = create_token()

    first, second = redeem_token(token), redeem_token(token)

    assert first is not None
    assert first.username == "owner"
    assert second is None


def test_a_link_is_refused_when_its_hours_are_over() -> None:
    token = create_token()
    SignInLink.objects.update(expires_at=Now() - timedelta(seconds=1))

    assert redeem_token(token) is None


def test_a_token_nobody_printed_is_refused() -> None:
    assert redeem_token("guessed") is None


def test_the_database_cannot_tell_the_token() -> None:
    token = create_token()

    assert token not in repr(SignInLink.objects.values().get())


def test_two_links_are_good_side_by_side() -> None:
    one, other = create_token(), create_token()

    assert redeem_token(other) == redeem_token(one)
