"""The user of a request."""

from django.contrib.auth.models import User
from django.http import HttpRequest


def find_owner(request: HttpRequest) -> User | None:
    """Return the signed-in user, or None."""
    return request.user if isinstance(request.user, User) else None
