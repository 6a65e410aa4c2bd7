"""Links that sign in the owner."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from toolbench.lab.models import SignInLink
from toolbench.lab.sign_in import make_token, redeem

pytestmark = pytest.mark.django_db


def test_a_link_lets_the_owner_in_once() -> None:
    token = make_token()

    first, second = redeem(token), redeem(token)

    assert first is not None
    assert first.username == "owner"
    assert second is None


def test_a_link_is_refused_when_its_hours_are_over() -> None:
    token = make_token()
    SignInLink.objects.update(expires_at=Now() - timedelta(seconds=1))

    assert redeem(token) is None


def test_a_token_nobody_printed_is_refused() -> None:
    assert redeem("guessed") is None


def test_the_database_cannot_tell_the_token() -> None:
    token = make_token()

    assert token not in repr(SignInLink.objects.values().get())


def test_two_links_are_good_side_by_side() -> None:
    one, other = make_token(), make_token()

    assert redeem(other) == redeem(one)
