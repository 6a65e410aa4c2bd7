"""Saved views: addresses of pages of results that users save by name, for themselves or for all users."""

import re
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import JSONObject

from toolbench.lab.accounts.roles import Role, has_role
from toolbench.lab.models import Run, SavedView
from toolbench.lab.query_params import clean_text

MAX_NAME_CHARACTERS = 80
MAX_ADDRESS_CHARACTERS = 2000
MAX_VIEWS = 100  # of one user
RESULT_PATHS = (  # paths of the pages that can be saved
    "/matrix/",
    "/trials/",
    "/failures/",
    "/latency/",
    "/compare/",
    "/decide/",
    "/trend/",
)


class SavedViewError(ValueError):
    """Refusal to save or delete a view; the message is for the user."""


@dataclass(frozen=True, slots=True)
class ListedView:
    """Saved view in the menu of a page."""

    id: int
    name: str
    address: str
    shared: bool
    owner_id: int
    owner_name: str


@dataclass(frozen=True, slots=True)
class ViewMenu:
    """Content of the menu of a page of results.

    Attributes:
        views: the user's views and all shared views, by name.
        newest_run: primary key of the newest run, for an address that shows no later runs; 0 without runs.
    """

    views: tuple[ListedView, ...] = ()
    newest_run: int = 0


def read_view_menu(user: User) -> ViewMenu:
    """Return the menu of a user, with one query."""
    visible = SavedView.objects.filter(Q(owner=OuterRef("pk")) | Q(shared=True)).order_by("name", "pk")
    columns = {name: name for name in ("id", "name", "address", "shared", "owner_id")}
    views = visible.values(document=JSONObject(**columns, owner_name="owner__username"))
    newest_run = Subquery(Run.objects.order_by("-pk").values("pk")[:1])
    row = User.objects.filter(pk=user.pk).values_list(newest_run, ArraySubquery(views)).first()
    return ViewMenu(tuple(ListedView(**view) for view in row[1]), row[0] or 0) if row else ViewMenu()


def save_view(user: User, name: str, address: str, *, shared: bool) -> SavedView:
    """Save a page under a name, in place of the user's view with the same name.

    Raises:
        SavedViewError: the name is empty, the address is not that of a page of results or is too long, or the user has
            too many views.
    """
    name = clean_text(name, MAX_NAME_CHARACTERS)
    if not name:
        raise SavedViewError("The view has no name. Enter one. Nothing was saved.")
    if not _is_page_of_results(address):
        raise SavedViewError("This is not a page of results, so it cannot be saved as a view. Nothing was saved.")
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
    path = re.split("[?#]", address, maxsplit=1)[0]
    return path in RESULT_PATHS and "\0" not in address  # PostgreSQL cannot store NUL in a text


def delete_view(user: User, view_id: int) -> str:
    """Delete a view and return its name.

    Raises:
        SavedViewError: the view does not exist, or the user may not delete it: it belongs to another user, and it is
            not shared or the user does not have the role OWNER.
    """
    view = SavedView.objects.filter(pk=view_id).first()
    if view is None or not (view.owner_id == user.pk or (view.shared and has_role(user, Role.OWNER))):
        raise SavedViewError("You have no such view; it may have been deleted. Nothing was deleted.")
    view.delete()
    return view.name
