"""Roles required to read and change each page."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse

from toolbench.lab.accounts.roles import Role, set_role

pytestmark = pytest.mark.django_db

RANKS = list(Role)
NO_SIGN_IN = {"sign-in", "sign-in-link", "health-live", "health-metrics", "shared"}
# Roles for reading and for changing, if they are not viewer and operator.
EXCEPTIONS: dict[str, tuple[Role, Role]] = {
    "provider-new": (Role.OWNER, Role.OWNER),
    "provider": (Role.VIEWER, Role.OWNER),
    "provider-delete": (Role.OWNER, Role.OWNER),
    "provider-models": (Role.OPERATOR, Role.OPERATOR),
    "people": (Role.OWNER, Role.OWNER),
    "person-act": (Role.VIEWER, Role.OWNER),
    "audit": (Role.OPERATOR, Role.OPERATOR),
    "run-repeat": (Role.OPERATOR, Role.OPERATOR),
    "retention": (Role.VIEWER, Role.OWNER),
    "formats": (Role.VIEWER, Role.VIEWER),
    "what-if-again": (Role.VIEWER, Role.VIEWER),
    "view-save": (Role.VIEWER, Role.VIEWER),
    "view-delete": (Role.VIEWER, Role.VIEWER),
    "theme": (Role.VIEWER, Role.VIEWER),
    "links": (Role.OPERATOR, Role.OPERATOR),
    "tokens": (Role.VIEWER, Role.VIEWER),
    "token-revoke": (Role.VIEWER, Role.VIEWER),
    "sign-out": (Role.VIEWER, Role.VIEWER),
}
TEXT_ARGUMENTS = {
    "side": "request",
    "kind": "csv",
    "file_format": "csv",
    "slug": "none",
    "file": "policy.json",
    "chart": "dots",
    "token": "none",
}


def list_patterns() -> Iterator[URLPattern]:
    """Yield every URL pattern except those of the API, whose table is in tests/api/test_scopes.py."""
    for pattern in get_resolver().url_patterns:
        if getattr(pattern, "namespace", None) != "api":
            yield from getattr(pattern, "url_patterns", [pattern])


def build_address(pattern: URLPattern) -> str:
    """Return an address of the pattern with ids that do not exist; a page may answer it with 404."""
    names = pattern.pattern.regex.groupindex
    arguments = {name: TEXT_ARGUMENTS.get(name, "999999") for name in names}
    if pattern.name == "case-export":
        arguments["file_format"] = "jsonl"
    return reverse(str(pattern.name), kwargs=arguments)


ADDRESSES = {str(pattern.name): build_address(pattern) for pattern in list_patterns()}


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("name", ADDRESSES)
def test_page_returns_403_only_without_required_role(name: str, role: Role) -> None:
    user = User(username="somebody")
    set_role(user, role)
    user.save()
    read, change = EXCEPTIONS.get(name, (Role.VIEWER, Role.OPERATOR))
    for method, needed in (("get", read), ("post", change)):
        client = Client(raise_request_exception=True)
        client.force_login(user)
        status = getattr(client, method)(ADDRESSES[name]).status_code
        is_allowed = name in NO_SIGN_IN or RANKS.index(role) >= RANKS.index(needed)
        assert (status != 403) == is_allowed, (method, status)
        assert status < 500


@pytest.mark.parametrize("name", sorted(ADDRESSES.keys() - NO_SIGN_IN))
def test_page_without_sign_in_redirects_to_sign_in(name: str, client: Client) -> None:
    for response in (client.get(ADDRESSES[name]), client.post(ADDRESSES[name])):
        assert response.status_code == 302
        assert response.headers["Location"].startswith("/sign-in/?next=")


def test_error_403_page_names_missing_role(client: Client) -> None:
    client.force_login(User.objects.create(username="viewer"))
    page = client.post("/runs/new/").content.decode()
    assert "You need the role operator for this." in page


def test_role_change_applies_to_next_request(client: Client) -> None:
    user = User.objects.create(username="ana", is_staff=True)
    client.force_login(user)
    assert client.get("/settings/audit/").status_code == 200
    User.objects.update(is_staff=False)
    assert client.get("/settings/audit/").status_code == 403
    User.objects.update(is_active=False)
    assert client.get("/runs/").status_code == 302
