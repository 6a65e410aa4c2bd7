"""Authentication of requests to the API: a token in the header, and for reading also a signed-in person."""

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja.security import HttpBearer

from toolbench.api.problems import ProblemError
from toolbench.api.rate_limits import check_rate, count_refusal
from toolbench.lab.accounts.audit import Action, record_action
from toolbench.lab.accounts.tokens import ROLES_BY_SCOPE, Scope, TokenAccess, find_access, list_allowed_scopes

SAFE_METHODS = ("GET", "HEAD")


class ToolbenchToken(HttpBearer):
    """Check that a request may send what needs a scope."""

    openapi_bearerFormat = "opaque"

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        super().__init__()

    def __call__(self, request: HttpRequest) -> TokenAccess | None:
        """Return what the request has access to; None without a valid token.

        Raises:
            ProblemError: the scope is missing, or there were too many requests.
        """
        access = self._find_access(request)
        if access is None:
            if "Authorization" in request.headers:
                count_refusal(request.META.get("REMOTE_ADDR", ""))
            return None
        if self.scope not in access.scopes:
            raise ProblemError(403, self._describe_missing(access), {"WWW-Authenticate": self._build_challenge()})
        check_rate(f"token:{access.token_id}" if access.token_id else f"user:{access.user.pk}", request.method or "")
        return access

    def authenticate(self, request: HttpRequest, token: str) -> TokenAccess | None:
        """Return what a token gives access to."""
        return find_access(token)

    def _find_access(self, request: HttpRequest) -> TokenAccess | None:
        if "Authorization" in request.headers:
            found: TokenAccess | None = super().__call__(request)
            return found
        # A cookie is sent by any page that makes the browser send a request: it never allows a change.
        if request.method in SAFE_METHODS and isinstance(request.user, User):
            return TokenAccess(0, request.user, frozenset(list_allowed_scopes(request.user)))
        return None

    def _describe_missing(self, access: TokenAccess) -> str:
        role = ROLES_BY_SCOPE[self.scope].label.lower()
        if self.scope not in list_allowed_scopes(access.user):
            return f"This needs the role {role}, which the maker of the token does not have."
        return f"This needs a token with the scope {self.scope.value}."

    def _build_challenge(self) -> str:
        return f'Bearer realm="Toolbench", error="insufficient_scope", scope="{self.scope.value}"'


def get_user(request: HttpRequest) -> User:
    """Return the person on whose behalf an authenticated request is sent."""
    return get_access(request).user


def get_access(request: HttpRequest) -> TokenAccess:
    """Return what an authenticated request has access to."""
    access: Any = getattr(request, "auth", None)
    assert isinstance(access, TokenAccess)
    return access


def record(request: HttpRequest, action: Action, subject: str, url: str = "") -> None:
    """Add what the request did to the audit list."""
    record_action(get_user(request), action, subject, url)


READ, LAUNCH, ADMIN = (ToolbenchToken(scope) for scope in (Scope.READ, Scope.LAUNCH, Scope.ADMIN))
