"""The user of a request, the audit list, and redirect targets that stay on this site."""

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme

from toolbench.lab.accounts.audit import Action, record_action

__all__ = ["Action", "choose_local_path", "find_owner", "find_username", "record"]


def find_owner(request: HttpRequest) -> User | None:
    """Return the signed-in user, or None."""
    return request.user if isinstance(request.user, User) else None


def find_username(request: HttpRequest) -> str:
    """Return the name of the signed-in user, "" without one."""
    owner = find_owner(request)
    return owner.username if owner else ""


def record(request: HttpRequest, action: Action, subject: str, url: str = "") -> None:
    """Add what the user did to the audit list."""
    record_action(find_owner(request), action, subject, url)


def choose_local_path(path: str, default: str = "/") -> str:
    """Return `path` if it is a path of this site, else `default`."""
    is_local = path.startswith("/") and url_has_allowed_host_and_scheme(path, allowed_hosts=None)
    return path if is_local else default
