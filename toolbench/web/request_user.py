"""Who asks, as the lab knows them."""

from django.contrib.auth.models import User
from django.http import HttpRequest


def find_owner(request: HttpRequest) -> User | None:
    """None for whoever is not signed in."""
    return request.user if isinstance(request.user, User) else None
