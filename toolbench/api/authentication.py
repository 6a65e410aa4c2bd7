"""Authentication of API requests: by a token, or for reading only by the session of a browser."""

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja.security import HttpBearer

from toolbench.api.problems import ProblemError
from toolbench.api.rate_limits import SAFE_METHODS, check_rate, count_refusal
from toolbench.lab.accounts.audit import Action, record_action
from toolbench.lab.accounts.tokens import ROLES_BY_SCOPE, Scope, TokenAccess, find_access, list_allowed_scopes

NO_TOKEN = 0  # `token_id` of the access that a browser's session gives


class ToolbenchToken(HttpBearer):
    """Authentication of the operations that need the scope `scope`."""

    openapi_bearerFormat = "opaque"

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        super().__init__()

    def __call__(self, request: HttpRequest) -> TokenAccess | None:
        """Return the access of a request; None if it has neither a valid token nor a session that may read.

        Raises:
            ProblemError: the access lacks the scope (403), or too many requests were sent (429).
        """
        access = self._find_access(request)
        if access is None:
            if "Authorization" in request.headers:
                count_refusal(request.META.get("REMOTE_ADDR", ""))
            return None
        if self.scope not in access.scopes:
            raise ProblemError(403, self._describe_missing_scope(access), {"WWW-Authenticate": self._build_challenge()})
        check_rate(f"token:{access.token_id}" if access.token_id else f"user:{access.user.pk}", request.method or "")
        return access

    def authenticate(self, request: HttpRequest, token: str) -> TokenAccess | None:
        """Return the access of a token; None for an invalid one. Ninja calls it."""
        return find_access(token)

    def _find_access(self, request: HttpRequest) -> TokenAccess | None:
        if "Authorization" in request.headers:
            access: TokenAccess | None = super().__call__(request)
            return access
        # Another site can make a browser send requests with the session's cookie, so a session never allows changes.
        if request.method in SAFE_METHODS and isinstance(request.user, User):
            return TokenAccess(NO_TOKEN, request.user, frozenset(list_allowed_scopes(request.user)))
        return None

    def _describe_missing_scope(self, access: TokenAccess) -> str:
        role = ROLES_BY_SCOPE[self.scope].label.lower()
        if self.scope not in list_allowed_scopes(access.user):
            subject = "The owner of the token" if access.token_id else "Your account"
            return f"{subject} lacks the role {role}. Ask an owner of this site for it."
        return f"The token lacks the scope {self.scope.value}. Send a token that has it."

    def _build_challenge(self) -> str:
        return f'Bearer realm="Toolbench", error="insufficient_scope", scope="{self.scope.value}"'


def get_user(request: HttpRequest) -> User:
    """Return the user of an authenticated request: the owner of its token, or the signed-in user."""
    return get_access(request).user


def get_access(request: HttpRequest) -> TokenAccess:
    """Return the access of an authenticated request. Call it only within an operation."""
    access: Any = getattr(request, "auth", None)
    assert isinstance(access, TokenAccess)
    return access


def record(request: HttpRequest, action: Action, subject: str, url: str = "") -> None:
    """Add an action of an authenticated request to the audit list.

    Args:
        request: the request.
        action: kind of action.
        subject: what was changed, such as "run 7".
        url: path of a page about the subject; "" for none.
    """
    record_action(get_user(request), action, subject, url)


READ, LAUNCH, ADMIN = (ToolbenchToken(scope) for scope in (Scope.READ, Scope.LAUNCH, Scope.ADMIN))
