"""Tokens for programs: made by a person, limited by scopes and by the person's role, and revoked at once."""

import hashlib
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import TextChoices
from django.db.models.functions import Now
from django.utils import timezone

from toolbench.lab.accounts.roles import Role, get_role, has_role
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import ApiToken
from toolbench.lab.query_params import clean_text

PREFIX = "tb_"
MAX_NAME_CHARS = 60
MAX_TOKENS = 50  # of one account that are not revoked
EXPIRY_DAYS = (7, 30, 90, 365)
_SHOWN_CHARS = 9
_SECRET_BYTES = 32
_USE_NOTED_EVERY = timedelta(minutes=1)


class Scope(TextChoices):
    """Kind of requests that a token may send. A scope does not include another one."""

    READ = "read", "Read: runs, trials, results and the library"
    LAUNCH = "launch", "Launch: start and control runs, change the library and notes"
    SERVE = "serve", "Serve: send requests to models through the gateway"
    ADMIN = "admin", "Admin: change providers"


ROLES_BY_SCOPE: Mapping[Scope, Role] = {
    Scope.READ: Role.VIEWER,
    Scope.LAUNCH: Role.OPERATOR,
    Scope.SERVE: Role.OPERATOR,
    Scope.ADMIN: Role.OWNER,
}


class TokenError(Exception):
    """A token that cannot be revoked; the text says why."""


@dataclass(frozen=True, slots=True)
class TokenAccess:
    """A valid token and what it may do now.

    Attributes:
        scopes: the token's scopes that the role of its maker still allows.
    """

    token_id: int
    user: User
    scopes: frozenset[Scope]
    name: str = ""


def list_allowed_scopes(user: User) -> tuple[Scope, ...]:
    """Return the scopes that the person's role allows."""
    return tuple(scope for scope, role in ROLES_BY_SCOPE.items() if has_role(user, role))


def list_tokens(user: User) -> Sequence[ApiToken]:
    """Return the tokens of a person, newest first, without those that were revoked."""
    return list(ApiToken.objects.filter(user=user, revoked_at=None))


def create_api_token(user: User, name: str, scopes: Collection[str], days: int | None) -> tuple[ApiToken, str]:
    """Create a token and return it with its secret, which is stored nowhere.

    Args:
        user: the maker.
        name: what the token is for.
        scopes: names of scopes.
        days: until it expires; None for never.

    Raises:
        InvalidFieldsError: the name is blank or too long, no scope is chosen, a scope is unknown or not allowed by the
            person's role, the days are not offered, or the person has too many tokens.
    """
    name = clean_text(name)
    if errors := _find_errors(user, name, scopes, days):
        raise InvalidFieldsError(errors)
    secret = PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        prefix=secret[:_SHOWN_CHARS],
        secret_hash=_hash_secret(secret),
        scopes=[scope for scope in Scope.values if scope in scopes],
        expires_at=timezone.now() + timedelta(days=days) if days else None,
    )
    return token, secret


def revoke_token(user: User, token_id: int) -> ApiToken:
    """Revoke a token of this person; its next request is refused.

    Raises:
        TokenError: the person has no such token, or it is revoked already.
    """
    tokens = ApiToken.objects.filter(pk=token_id, user=user)
    if not tokens.filter(revoked_at=None).update(revoked_at=Now()):
        raise TokenError("There is no such token of yours; it may have been revoked already.")
    return tokens.get()


def find_access(secret: str) -> TokenAccess | None:
    """Return what a secret gives access to, and note its use.

    Returns:
        None for a secret that is unknown, expired or revoked, or whose account is closed.
    """
    tokens = ApiToken.objects.filter(secret_hash=_hash_secret(secret), revoked_at=None, user__is_active=True)
    token = tokens.select_related("user").first()
    now = timezone.now()
    if token is None or (token.expires_at is not None and token.expires_at <= now):
        return None
    if token.last_used_at is None or now - token.last_used_at > _USE_NOTED_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    allowed = list_allowed_scopes(token.user)
    return TokenAccess(token.pk, token.user, frozenset(scope for scope in allowed if scope in token.scopes), token.name)


def _find_errors(user: User, name: str, scopes: Collection[str], days: int | None) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = {}
    if not name or len(name) > MAX_NAME_CHARS:
        errors["name"] = [f"Enter a name of 1 to {MAX_NAME_CHARS} characters."]
    allowed = list_allowed_scopes(user)
    if not scopes:
        errors["scopes"] = ["Choose at least one scope."]
    elif refused := sorted(set(scopes) - set(allowed)):
        role = get_role(user).label.lower()
        errors["scopes"] = [f"The role {role} cannot give the scope {', '.join(refused)[:100]}."]
    if days is not None and days not in EXPIRY_DAYS:
        errors["days"] = [f"Choose {', '.join(map(str, EXPIRY_DAYS))} days, or no expiry."]
    if len(list_tokens(user)) >= MAX_TOKENS:
        errors["name"] = [f"You have {MAX_TOKENS} tokens. Revoke one that is not needed first."]
    return errors


def _hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()
