"""Tokens of sign-in links, each of which signs a person in once. The database stores only their hashes."""

import hashlib
import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models.functions import Now

from toolbench.lab.accounts.roles import Role, set_role
from toolbench.lab.models import SignInLink

OWNER_NAME = "owner"  # name of the first account


def create_token(user: User | None = None) -> str:
    """Create a token that signs a person in once within settings.SIGN_IN_HOURS hours.

    Args:
        user: the account that the token signs in; None for the account of `get_first_owner`.
    """
    token = secrets.token_urlsafe(24)
    expires_at = Now() + timedelta(hours=settings.SIGN_IN_HOURS)
    SignInLink.objects.create(user=user or get_first_owner(), token_hash=_hash(token), expires_at=expires_at)
    return token


def redeem_token(token: str) -> User | None:
    """Mark a token as used and return its account.

    If a token is used twice at the same time, only one use succeeds.

    Returns:
        The account; None if the token is unknown, used or expired, or its account is closed.
    """
    links = SignInLink.objects.filter(token_hash=_hash(token), user__is_active=True)
    if not links.filter(used_at=None, expires_at__gt=Now()).update(used_at=Now()):
        return None
    return links.select_related("user")[0].user


def get_first_owner() -> User:
    """Return the account OWNER_NAME. Create it, open it or make it an owner first if needed."""
    user, _ = User.objects.get_or_create(username=OWNER_NAME)
    if not (user.is_superuser and user.is_active):
        set_role(user, Role.OWNER)
        user.is_active = True
        user.save(update_fields=["is_superuser", "is_staff", "is_active"])
    return user


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
