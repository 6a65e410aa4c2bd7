"""Roles that pages require. Without `require_roles`, reading needs a viewer and changing an operator."""

from collections.abc import Callable

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase

from toolbench.lab.accounts.roles import Role, has_role

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
View = Callable[..., HttpResponseBase]
_ROLES_BY_VIEW: dict[View, tuple[Role, Role]] = {}  # role for reading, role for changing

__all__ = ["Role", "RoleMiddleware", "get_required_role", "require_roles"]


def require_roles(*, read: Role = Role.VIEWER, change: Role = Role.OPERATOR) -> Callable[[View], View]:
    """Return a decorator that sets the roles that a view requires. It must be the outermost decorator.

    Args:
        read: role for GET, HEAD and OPTIONS.
        change: role for every other method.
    """

    def decorate(view: View) -> View:
        _ROLES_BY_VIEW[view] = (read, change)
        return view

    return decorate


def get_required_role(view: View, method: str) -> Role:
    """Return the role that a view requires for a method."""
    read, change = _ROLES_BY_VIEW.get(view, (Role.VIEWER, Role.OPERATOR))
    return read if method in SAFE_METHODS else change


class RoleMiddleware:
    """Middleware that answers 403 if the role of the signed-in user does not allow the request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response of the next middleware; `process_view` does the check."""
        return self._get_response(request)

    def process_view(self, request: HttpRequest, view: View, args: object, kwargs: object) -> None:
        """Check the user's role before the view runs.

        Raises:
            PermissionDenied: a signed-in user does not have the required role, which the message names.
        """
        role = get_required_role(view, request.method or "GET")
        if getattr(view, "login_required", True) and request.user.is_authenticated and not has_role(request.user, role):
            raise PermissionDenied(f"You need the role {role.label.lower()} for this.")
