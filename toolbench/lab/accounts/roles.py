"""Roles of accounts: what a person may do.

Django's own flags hold the role, so that reading it needs no query: an owner is a superuser, an operator is staff.
"""

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import TextChoices


class Role(TextChoices):
    """Role of an account, the one that may do least first. Each role may do what the roles before it may."""

    VIEWER = "viewer", "Viewer"  # reads every page
    OPERATOR = "operator", "Operator"  # also launches runs and changes presets, test cases and notes
    OWNER = "owner", "Owner"  # also changes providers, keys and people


_RANKS = {role: rank for rank, role in enumerate(Role)}


def get_role(user: User | AnonymousUser) -> Role:
    """Return the role of an account."""
    if user.is_superuser:
        return Role.OWNER
    return Role.OPERATOR if user.is_staff else Role.VIEWER


def has_role(user: User | AnonymousUser, role: Role) -> bool:
    """Return whether an account may do what `role` may do."""
    return _RANKS[get_role(user)] >= _RANKS[role]


def set_role(user: User, role: Role) -> None:
    """Set the role of an account, which the caller saves."""
    user.is_superuser = role == Role.OWNER
    user.is_staff = role != Role.VIEWER
