"""Roles that the pages ask for. Without a decorator, reading is for viewers and changing for operators."""

from collections.abc import Callable

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase

from toolbench.lab.accounts.roles import Role, has_role

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
View = Callable[..., HttpResponseBase]
_ROLES_BY_VIEW: dict[View, tuple[Role, Role]] = {}  # for reading and for changing

__all__ = ["Role", "RoleMiddleware", "get_required_role", "require_roles"]


def require_roles(*, read: Role = Role.VIEWER, change: Role = Role.OPERATOR) -> Callable[[View], View]:
    """Return a decorator that sets the roles needed for a view; it stands above all others.

    Args:
        read: for GET and HEAD.
        change: for every other method.
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
    """Middleware that answers 403 to a signed-in person whose role does not allow the request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response of the next middleware."""
        return self._get_response(request)

    def process_view(self, request: HttpRequest, view: View, args: object, kwargs: object) -> None:
        """Check the role before the view runs.

        Raises:
            PermissionDenied: the role is missing; the message names it.
        """
        role = get_required_role(view, request.method or "GET")
        if getattr(view, "login_required", True) and request.user.is_authenticated and not has_role(request.user, role):
            raise PermissionDenied(f"This needs the role {role.label.lower()}.")
