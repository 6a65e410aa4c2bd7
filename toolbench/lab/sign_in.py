"""Links that sign in the owner: printed once, used once. The database keeps a hash, so nobody can read a link there."""

import hashlib
import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models.functions import Now

from toolbench.lab.models import SignInLink

OWNER = "owner"


def create_token() -> str:
    """A fresh token, good once and for settings.SIGN_IN_HOURS, also after a restart."""
    token = secrets.token_urlsafe(24)
    SignInLink.objects.create(token_hash=_hash(token), expires_at=Now() + timedelta(hours=settings.SIGN_IN_HOURS))
    return token


def redeem_token(token: str) -> User | None:
    """The owner, whose account is made on first use; None for a token that is unknown, used or too old. Of two who
    come at once one is let in."""
    fresh = SignInLink.objects.filter(token_hash=_hash(token), used_at=None, expires_at__gt=Now())
    if not fresh.update(used_at=Now()):
        return None
    return User.objects.get_or_create(username=OWNER)[0]


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
