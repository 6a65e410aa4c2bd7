"""API tokens: scopes, expiry and revocation."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from toolbench.lab.accounts.roles import Role, set_role
from toolbench.lab.accounts.tokens import (
    MAX_TOKENS,
    ROLES_BY_SCOPE,
    Scope,
    TokenError,
    create_api_token,
    find_access,
    list_allowed_scopes,
    list_tokens,
    revoke_token,
)
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import ApiToken

pytestmark = pytest.mark.django_db


def make_person(role: Role, name: str = "ana") -> User:
    person = User(username=name)
    set_role(person, role)
    person.save()
    return person


@pytest.mark.parametrize("role", Role)
def test_create_api_token_allows_scopes_of_role_only(role: Role) -> None:
    person = make_person(role)
    allowed = list_allowed_scopes(person)
    assert allowed == tuple(
        scope for scope in Scope if list(Role).index(ROLES_BY_SCOPE[scope]) <= list(Role).index(role)
    )
    secret = create_api_token(person, "all", allowed, None)[1]
    access = find_access(secret)
    assert access is not None
    assert access.scopes == set(allowed)
    for scope in set(Scope) - set(allowed):
        with pytest.raises(InvalidFieldsError, match=f"cannot give the scope {scope}"):
            create_api_token(person, "more", [scope], None)


def test_find_access_after_role_change_never_adds_scopes() -> None:
    person = make_person(Role.OPERATOR)
    secret = create_api_token(person, "ci", [Scope.READ, Scope.LAUNCH], None)[1]
    for role, scopes in ((Role.VIEWER, {Scope.READ}), (Role.OWNER, {Scope.READ, Scope.LAUNCH})):
        set_role(person, role)
        person.save()
        access = find_access(secret)
        assert access is not None
        assert access.scopes == scopes


def test_create_api_token_stores_only_hash_of_random_secret() -> None:
    person = make_person(Role.OWNER)
    secrets = {create_api_token(person, "ci", [Scope.READ], 7)[1] for _ in range(5)}
    assert len(secrets) == 5
    stored = str(list(ApiToken.objects.values()))
    assert not any(secret[12:] in stored for secret in secrets)


def test_find_access_of_expired_revoked_or_unknown_secret_is_none() -> None:
    person = make_person(Role.OWNER)
    token, secret = create_api_token(person, "ci", [Scope.READ], 7)
    assert find_access(secret + "x") is None
    assert find_access("\udcff") is None
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert find_access(secret) is None
    ApiToken.objects.update(expires_at=None)
    assert find_access(secret) is not None
    with pytest.raises(TokenError):
        revoke_token(make_person(Role.OWNER, "bob"), token.pk)
    revoke_token(person, token.pk)
    assert find_access(secret) is None
    assert list_tokens(person) == []


def test_create_api_token_above_limit_is_refused() -> None:
    person = make_person(Role.OWNER)
    row = {"user": person, "name": "ci", "prefix": "tb_"}
    ApiToken.objects.bulk_create(ApiToken(**row, secret_hash=f"{number:064}") for number in range(MAX_TOKENS))
    with pytest.raises(InvalidFieldsError, match="First revoke a token"):
        create_api_token(person, "one more", [Scope.READ], None)
