"""API tokens of programs, which are limited by their scopes and by the role of the person who created them."""

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

TOKEN_PREFIX = "tb_"
MAX_NAME_CHARS = 60
MAX_TOKENS = 50  # tokens of one account that are not revoked
EXPIRY_DAYS = (7, 30, 90, 365)
_SHOWN_CHARS = 9  # first characters of a secret, which are stored so that the list can show them
_SECRET_BYTES = 32
_LAST_USE_PRECISION = timedelta(minutes=1)


class Scope(TextChoices):
    """Kind of requests that a token may send. No scope includes another."""

    READ = "read", "Read: runs, trials, results and the library"
    LAUNCH = "launch", "Launch: start and control runs, change the library and notes"
    SERVE = "serve", "Serve: send requests to models through the gateway"
    ADMIN = "admin", "Admin: change providers"


# The lowest role that a person must have to give a token the scope.
ROLES_BY_SCOPE: Mapping[Scope, Role] = {
    Scope.READ: Role.VIEWER,
    Scope.LAUNCH: Role.OPERATOR,
    Scope.SERVE: Role.OPERATOR,
    Scope.ADMIN: Role.OWNER,
}


class TokenError(Exception):
    """Raised if a token cannot be revoked; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class TokenAccess:
    """Valid token with its present permissions.

    Attributes:
        user: the person who created the token.
        scopes: the token's scopes that the role of the person still allows.
        name: what the token is for.
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
    """Create a token and return it with its secret.

    Only a hash and the first _SHOWN_CHARS characters of the secret are stored.

    Args:
        user: the person who creates the token.
        name: what the token is for.
        scopes: values of Scope.
        days: days until the token expires; None for never.

    Raises:
        InvalidFieldsError: the name is blank or too long, no scope is chosen, a scope is unknown or not allowed by the
            person's role, `days` is not in EXPIRY_DAYS, or the person has MAX_TOKENS tokens already.
    """
    name = clean_text(name)
    if errors := _find_errors(user, name, scopes, days):
        raise InvalidFieldsError(errors)
    secret = TOKEN_PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
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
    """Revoke a token of this person; requests with it are refused from now on.

    Raises:
        TokenError: the person has no such token, or it is revoked already.
    """
    tokens = ApiToken.objects.filter(pk=token_id, user=user)
    if not tokens.filter(revoked_at=None).update(revoked_at=Now()):
        raise TokenError("You have no such token. It may have been revoked already.")
    return tokens.get()


def find_access(secret: str) -> TokenAccess | None:
    """Return the access that a secret gives, and store the time of its use at most once a minute.

    Returns:
        The access; None if the secret is unknown, expired or revoked, or its account is closed.
    """
    tokens = ApiToken.objects.filter(secret_hash=_hash_secret(secret), revoked_at=None, user__is_active=True)
    token = tokens.select_related("user").first()
    now = timezone.now()
    if token is None or (token.expires_at is not None and token.expires_at <= now):
        return None
    if token.last_used_at is None or now - token.last_used_at > _LAST_USE_PRECISION:
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
        errors["name"] = [f"You have {MAX_TOKENS} tokens. First revoke a token that you do not need."]
    return errors


def _hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()
