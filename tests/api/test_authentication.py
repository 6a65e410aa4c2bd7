"""Authentication at the API: tokens, scopes, roles and session cookies."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from tests.api.requests import ApiClient
from tests.factories import make_run
from toolbench.lab.accounts.roles import Role, set_role
from toolbench.lab.accounts.tokens import Scope, create_api_token, revoke_token
from toolbench.lab.models import ApiToken, Run

pytestmark = pytest.mark.django_db


def test_api_without_token_returns_401_with_instructions(client: Client) -> None:
    answer = client.get("/api/v1/runs")
    assert answer.status_code == 401
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="Toolbench"'
    assert "Authorization: Bearer" in answer.json()["detail"]


@pytest.mark.parametrize("header", ["Bearer no", "Bearer ", "Basic eDp5", "x", "Bearer tb_\xff"])
def test_api_with_invalid_token_returns_401(client: Client, db: None, header: str) -> None:
    answer = client.get("/api/v1/runs", headers={"Authorization": header})
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


def test_api_refuses_expired_revoked_and_inactive_token(api: ApiClient, owner: User) -> None:
    token = ApiToken.objects.get()
    api.get("/runs")
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert api.send("GET", "/runs").status_code == 401
    ApiToken.objects.update(expires_at=None)
    User.objects.update(is_active=False)
    assert api.send("GET", "/runs").status_code == 401
    User.objects.update(is_active=True)
    api.get("/runs")
    revoke_token(owner, token.pk)
    assert api.send("GET", "/runs").status_code == 401


def test_api_token_is_limited_by_current_role_of_its_user(api: ApiClient, owner: User) -> None:
    run = make_run(state=Run.State.RUNNING)
    set_role(owner, Role.VIEWER)
    owner.save()
    problem = api.problem("POST", f"/runs/{run.pk}/pause", status=403)
    assert "role operator" in problem["detail"]
    api.get("/runs")


def test_api_session_names_the_missing_role_of_the_account(owner_client: Client, owner: User) -> None:
    set_role(owner, Role.VIEWER)
    owner.save()
    detail = owner_client.get("/api/v1/share-links").json()["detail"]
    assert detail == "Your account lacks the role operator. Ask an owner of this site for it."


def test_api_names_missing_scope(owner: User) -> None:
    reader = ApiClient(create_api_token(owner, "reader", [Scope.READ], None)[1])
    answer = reader.send("POST", "/runs", {})
    assert answer.status_code == 403
    assert 'scope="launch"' in answer.headers["WWW-Authenticate"]


def test_api_session_cookie_reads_but_cannot_change(owner_client: Client) -> None:
    run = make_run(state=Run.State.RUNNING)
    assert owner_client.get("/api/v1/runs").status_code == 200
    assert owner_client.post(f"/api/v1/runs/{run.pk}/pause").status_code == 401
    assert Run.objects.get().state == Run.State.RUNNING


def test_api_token_last_use_is_stored_once_per_minute(api: ApiClient) -> None:
    api.get("/runs")
    first = ApiToken.objects.get().last_used_at
    assert first is not None
    api.get("/runs")
    assert ApiToken.objects.get().last_used_at == first
    ApiToken.objects.update(last_used_at=first - timedelta(minutes=2))
    api.get("/runs")
    assert ApiToken.objects.get().last_used_at != first - timedelta(minutes=2)
