"""Links that sign in the owner, each once. The database stores a hash, from which the link cannot be read."""

import hashlib
import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models.functions import Now

from toolbench.lab.models import SignInLink

OWNER = "owner"


def create_token() -> str:
    """Create a token that works once within settings.SIGN_IN_HOURS, also after a restart."""
    token = secrets.token_urlsafe(24)
    SignInLink.objects.create(token_hash=_hash(token), expires_at=Now() + timedelta(hours=settings.SIGN_IN_HOURS))
    return token


def redeem_token(token: str) -> User | None:
    """Use a token and return the owner, whose account is created on first use.

    Of two simultaneous uses, one succeeds.

    Returns:
        None for a token that is unknown, used or expired.
    """
    fresh = SignInLink.objects.filter(token_hash=_hash(token), used_at=None, expires_at__gt=Now())
    if not fresh.update(used_at=Now()):
        return None
    return User.objects.get_or_create(username=OWNER)[0]


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
