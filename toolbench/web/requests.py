"""The user of a request, and redirect targets that stay on this site."""

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme


def find_owner(request: HttpRequest) -> User | None:
    """Return the signed-in user, or None."""
    return request.user if isinstance(request.user, User) else None


def choose_local_path(given: str, otherwise: str = "/") -> str:
    """Return `given` if it is a path of this site, else `otherwise`."""
    safe = given.startswith("/") and url_has_allowed_host_and_scheme(given, allowed_hosts=None)
    return given if safe else otherwise
