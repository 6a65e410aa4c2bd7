"""Accounts: invitations, roles and the last owner."""

import pytest
from django.contrib.auth.models import User

from toolbench.lab.accounts.people import PeopleError, change_role, create_new_token, invite, list_people, set_open
from toolbench.lab.accounts.roles import Role, get_role
from toolbench.lab.accounts.sign_in import get_first_owner, redeem_token

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("role", Role)
def test_invite_creates_account_with_role(role: Role) -> None:
    user, token = invite("ana", role)
    redeemed = redeem_token(token)
    assert redeemed == user
    assert redeemed is not None
    assert get_role(redeemed) == role
    assert redeem_token(token) is None


@pytest.mark.parametrize("name", ["", "  ", "a" * 61, "two words", "a/b", "a\0b<"])
def test_invite_with_invalid_name_creates_nothing(name: str) -> None:
    with pytest.raises(PeopleError, match="Nobody was invited"):
        invite(name, "viewer")
    assert not User.objects.exists()


def test_invite_refuses_a_taken_name_and_an_unknown_role() -> None:
    invite("ana", "viewer")
    with pytest.raises(PeopleError, match="already"):
        invite("ana", "owner")
    with pytest.raises(PeopleError, match="viewer, operator or owner"):
        invite("ben", "king")
    assert [person.role for person in list_people()] == [Role.VIEWER]


def test_change_role_and_set_open_refuse_last_owner() -> None:
    owner = get_first_owner()
    with pytest.raises(PeopleError, match="last owner"):
        change_role(owner.pk, "viewer")
    with pytest.raises(PeopleError, match="last owner"):
        set_open(owner.pk, is_open=False)
    owner.refresh_from_db()
    assert get_role(owner) == Role.OWNER
    assert owner.is_active

    invite("ana", "owner")
    assert get_role(change_role(owner.pk, "viewer")) == Role.VIEWER


def test_set_open_false_disables_links_of_account() -> None:
    get_first_owner()
    user, token = invite("ana", "viewer")
    set_open(user.pk, is_open=False)
    assert redeem_token(token) is None
    with pytest.raises(PeopleError, match="closed"):
        create_new_token(user.pk)
    set_open(user.pk, is_open=True)
    assert redeem_token(create_new_token(user.pk)[1]) == user


def test_change_role_of_unknown_account_is_refused() -> None:
    get_first_owner()
    with pytest.raises(PeopleError, match="no such account"):
        change_role(10**9, "viewer")
