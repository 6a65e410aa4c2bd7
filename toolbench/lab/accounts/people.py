"""Accounts of the people who may use the site: list, invitations, roles, closed accounts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from toolbench.lab.accounts.roles import Role, get_role, set_role
from toolbench.lab.accounts.sign_in import create_token
from toolbench.lab.query_params import clean_text

MAX_NAME_CHARS = 60
_FLAG_COLUMNS = ["is_superuser", "is_staff", "is_active"]


class PeopleError(Exception):
    """Raised if an account cannot be created or changed as requested; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Person:
    """Account in the list of people.

    Attributes:
        is_open: whether the person can sign in.
        signed_in_at: time of the last sign-in; None before the first.
    """

    id: int
    name: str
    role: Role
    is_open: bool
    signed_in_at: datetime | None


def list_people() -> Sequence[Person]:
    """Return all accounts, sorted by name."""
    users = User.objects.order_by("username")
    return [Person(user.pk, user.username, get_role(user), user.is_active, user.last_login) for user in users]


def invite(name: str, role: str) -> tuple[User, str]:
    """Create an account and return it with a sign-in token.

    Raises:
        PeopleError: the name is blank, too long, has other characters than letters, digits and @ . + - _, or is taken;
            or there is no such role.
    """
    name = clean_text(name)
    if not name or len(name) > MAX_NAME_CHARS:
        raise PeopleError(f"Enter a name of 1 to {MAX_NAME_CHARS} characters. Nobody was invited.")
    try:
        UnicodeUsernameValidator()(name)
    except ValidationError:
        raise PeopleError("Use only letters, digits and @ . + - _ in a name. Nobody was invited.") from None
    user = User(username=name)
    set_role(user, _parse_role(role))
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError:
        raise PeopleError(f"The account {name} already exists. Create a new sign-in link for it.") from None
    return user, create_token(user)


def create_new_token(user_id: int) -> tuple[User, str]:
    """Create a new sign-in token for an open account; return the account and the token.

    Raises:
        PeopleError: the account is closed or does not exist.
    """
    user = _get_user(user_id)
    if not user.is_active:
        raise PeopleError(f"The account of {user.username} is closed. Open it first.")
    return user, create_token(user)


def change_account(user_id: int, action: str, role: str) -> str:
    """Change an account and describe the change for the audit list.

    Args:
        user_id: primary key of the account.
        action: "role", "open" or "close".
        role: the new role for the action "role"; ignored otherwise.

    Raises:
        PeopleError: the action is unknown, the account or role does not exist, or no open owner would be left.
    """
    if action == "role":
        user = change_role(user_id, role)
        return f"role of {user.username}: {get_role(user).label.lower()}"
    if action not in ("open", "close"):
        raise PeopleError(f"There is no action {action[:20]}. Choose role, open or close.")
    user = set_open(user_id, is_open=action == "open")
    return f"account of {user.username}: {'open' if user.is_active else 'closed'}"


def change_role(user_id: int, role: str) -> User:
    """Change the role of an account; the new role applies from the person's next request on.

    Raises:
        PeopleError: the account or role does not exist, or no open owner would be left.
    """
    with transaction.atomic():
        user = _lock_user(user_id)
        set_role(user, _parse_role(role))
        _save_flags(user)
    return user


def set_open(user_id: int, *, is_open: bool) -> User:
    """Open or close an account. Closing signs the person out at the next request and keeps the person's runs.

    Raises:
        PeopleError: the account does not exist, or no open owner would be left.
    """
    with transaction.atomic():
        user = _lock_user(user_id)
        user.is_active = is_open
        _save_flags(user)
    return user


def _lock_user(user_id: int) -> User:
    """Return an account and lock all owners, so that two simultaneous changes cannot remove the last two owners."""
    list(User.objects.select_for_update().filter(is_superuser=True).order_by("pk"))
    return _get_user(user_id)


def _get_user(user_id: int) -> User:
    user = User.objects.filter(pk=user_id).first()
    if user is None:
        raise PeopleError("There is no such account; it may have been deleted.")
    return user


def _save_flags(user: User) -> None:
    """Save the role of an account and whether it is open.

    Raises:
        PeopleError: no open owner would be left; the caller's transaction is rolled back.
    """
    user.save(update_fields=_FLAG_COLUMNS)
    if not User.objects.filter(is_superuser=True, is_active=True).exists():
        raise PeopleError(f"{user.username} is the last owner. Make another person an owner first.")


def _parse_role(role: str) -> Role:
    if role not in Role.values:
        raise PeopleError("Choose a role: viewer, operator or owner. Nothing was changed.")
    return Role(role)
