"""Roles of accounts.

The role is stored in two columns of Django's user: `is_superuser` for an owner, `is_staff` for an owner or operator.
"""

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import TextChoices


class Role(TextChoices):
    """Role of an account. Each role includes the permissions of the roles before it."""

    VIEWER = "viewer", "Viewer"  # reads pages; some require a higher role, see web/roles.py
    OPERATOR = "operator", "Operator"  # also launches runs and changes presets, test cases and notes
    OWNER = "owner", "Owner"  # also changes providers, keys and people


_RANKS = {role: rank for rank, role in enumerate(Role)}


def get_role(user: User | AnonymousUser) -> Role:
    """Return the role of an account."""
    if user.is_superuser:
        return Role.OWNER
    return Role.OPERATOR if user.is_staff else Role.VIEWER


def has_role(user: User | AnonymousUser, role: Role) -> bool:
    """Return whether an account has this role or one with more permissions."""
    return _RANKS[get_role(user)] >= _RANKS[role]


def set_role(user: User, role: Role) -> None:
    """Set the role of an account without saving it."""
    user.is_superuser = role == Role.OWNER
    user.is_staff = role != Role.VIEWER
