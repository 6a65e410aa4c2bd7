"""Saved views: pages of results with their scope, kept by a person under a name and shared on request."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from django.db.models import Q

from toolbench.lab.accounts.roles import Role, has_role
from toolbench.lab.models import Run, SavedView
from toolbench.lab.query_params import clean_text

MAX_NAME_CHARACTERS = 80
MAX_ADDRESS_CHARACTERS = 2000
MAX_VIEWS = 100  # of one person
PATHS = ("/matrix/", "/trials/", "/failures/", "/latency/", "/compare/", "/decide/", "/trend/")


class SavedViewError(ValueError):
    """A view that cannot be saved or changed; the message is for the user."""


def list_views(user: User) -> Sequence[SavedView]:
    """Return the person's own views and shared ones, by name, with one query."""
    return list(SavedView.objects.filter(Q(owner=user) | Q(shared=True)).select_related("owner"))


def save_view(user: User, name: str, address: str, *, shared: bool) -> SavedView:
    """Save a page under a name. A view of this person with the same name is replaced.

    Raises:
        SavedViewError: the name is empty, the address is no page of results, or there are too many views.
    """
    name = clean_text(name, MAX_NAME_CHARACTERS)
    if not name:
        raise SavedViewError("The view needs a name. Nothing was saved.")
    if not _is_page_of_results(address):
        raise SavedViewError("Only a page of results can be saved as a view. Nothing was saved.")
    if len(address) > MAX_ADDRESS_CHARACTERS:
        raise SavedViewError(
            f"The address of this page has more than {MAX_ADDRESS_CHARACTERS:,} characters: choose fewer values. "
            "Nothing was saved."
        )
    if SavedView.objects.filter(owner=user).exclude(name=name).count() >= MAX_VIEWS:
        raise SavedViewError(f"You have {MAX_VIEWS} views: delete one first. Nothing was saved.")
    view, _ = SavedView.objects.update_or_create(owner=user, name=name, defaults={"address": address, "shared": shared})
    return view


def _is_page_of_results(address: str) -> bool:
    parts = urlsplit(address)
    return parts.path in PATHS and not parts.scheme and not parts.netloc and "\0" not in address


def delete_view(user: User, view_id: int) -> str:
    """Delete a view and return its name.

    Raises:
        SavedViewError: there is no such view, or it belongs to another person and the user is no owner of the site.
    """
    view = SavedView.objects.filter(pk=view_id).first()
    if view is None or not (view.owner_id == user.pk or (view.shared and has_role(user, Role.OWNER))):
        raise SavedViewError("There is no view of yours with this number. Nothing was deleted.")
    view.delete()
    return view.name


def find_newest_run_id() -> int:
    """Return the primary key of the newest run; 0 without runs. A frozen address names it."""
    return Run.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
