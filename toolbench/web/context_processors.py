"""Context of the frame of every page: theme, role, places and tabs."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.http import HttpRequest

from toolbench.lab.accounts.roles import Role, get_role
from toolbench.lab.models import SavedView
from toolbench.lab.results.saved_views import PATHS, find_newest_run_id, list_views
from toolbench.web.result_scope import ResultScope

_FREEZABLE_PATHS = ("/matrix/", "/trials/", "/failures/", "/decide/")
THEMES = ("system", "light", "dark")


@dataclass(frozen=True, slots=True)
class Tab:
    """A page of a place.

    Attributes:
        prefixes: beginnings of the paths of pages that belong to it, beside its own.
    """

    label: str
    url: str
    prefixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """One of the places of the site, with its tabs; a place without tabs is one page."""

    label: str
    url: str
    tabs: tuple[Tab, ...] = ()
    prefixes: tuple[str, ...] = ()


RESULT_TABS = (
    Tab("Matrix", "/matrix/"),
    Tab("Trials", "/trials/", ("/steps/",)),
    Tab("Failures", "/failures/"),
    Tab("Latency", "/latency/"),
    Tab("Compare", "/compare/"),
    Tab("Decide", "/decide/"),
    Tab("Trend", "/trend/"),
)
RUN_TABS = (
    Tab("Own runs", "/runs/"),
    Tab("Simulated", "/demo/"),
    Tab("Imported", "/imported/"),
    Tab("Schedules", "/schedules/"),
)
LIBRARY_TABS = (
    Tab("Scenarios", "/scenarios/"),
    Tab("Test cases", "/cases/"),
    Tab("Models", "/models/"),
    Tab("Sampling profiles", "/profiles/"),
    Tab("Presets", "/presets/"),
    Tab("Effective settings", "/policy/"),
    Tab("Formats", "/formats/"),
    Tab("Compatibility", "/compatibility/"),
    Tab("Metrics", "/metrics/"),
)
PROVIDER_TABS = (
    Tab("Providers", "/providers/", ("/probes/",)),
    Tab("Gateway", "/gateway/"),
)
PLACES = (
    Place("Results", "/matrix/", RESULT_TABS),
    Place("Runs", "/runs/", RUN_TABS, ("/what-if/",)),
    Place("Library", "/scenarios/", LIBRARY_TABS),
    Place("Providers", "/providers/", PROVIDER_TABS),
)


@dataclass(frozen=True, slots=True)
class NavigationLink:
    """A link of the navigation.

    Attributes:
        current: whether the link leads to the current page or section.
    """

    label: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """Theme, role and navigation of a page.

    Attributes:
        nav: the places; empty without a signed-in user.
        place: label of the current place; "" outside all places.
        tabs: the tabs of the current place; those of the results keep the scope of the page.
        role: the user's role; a viewer's without one.
    """

    theme: str
    next_theme: str
    nav: tuple[NavigationLink, ...]
    place: str
    tabs: tuple[NavigationLink, ...]
    role: Role

    @property
    def is_operator(self) -> bool:
        """Whether the user may launch runs and change what is saved."""
        return self.role != Role.VIEWER

    @property
    def is_owner(self) -> bool:
        """Whether the user may change providers, keys and people."""
        return self.role == Role.OWNER


def frame(request: HttpRequest) -> dict[str, Frame]:
    """Add `frame` to every template. Without a signed-in user it has no navigation."""
    theme = request.COOKIES.get("theme", "system")
    theme = theme if theme in THEMES else "system"
    next_theme = THEMES[(THEMES.index(theme) + 1) % len(THEMES)]
    if not (hasattr(request, "user") and request.user.is_authenticated):
        return {"frame": Frame(theme, next_theme, (), "", (), Role.VIEWER)}
    current = _find_place(request.path)
    nav = tuple(NavigationLink(place.label, place.url, place is current) for place in PLACES)
    scope = ResultScope.from_query(request.GET) if current and current.tabs is RESULT_TABS else ResultScope()
    tabs = tuple(
        NavigationLink(
            tab.label, f"{tab.url}{scope.build_query(tab.url)}", _is_within(request.path, (tab.url, *tab.prefixes))
        )
        for tab in (current.tabs if current else ())
    )
    label = current.label if current else ""
    return {"frame": Frame(theme, next_theme, nav, label, tabs, get_role(request.user))}


@dataclass(frozen=True, slots=True)
class SavedViews:
    """The menu of saved views and the addresses to share of a page of results.

    Attributes:
        address: path and query string of the page.
        frozen_address: the full address that shows only runs up to `newest_run`; "" for pages that show named runs.
    """

    views: Sequence[SavedView]
    user_id: int
    address: str
    live_address: str
    frozen_address: str
    newest_run: int


def saved(request: HttpRequest) -> dict[str, SavedViews | None]:
    """Add `saved` to the pages of results with a scope; None elsewhere."""
    user = getattr(request, "user", None)
    if request.path not in PATHS or not isinstance(user, User):
        return {"saved": None}
    newest, frozen = find_newest_run_id(), request.GET.copy()
    frozen.setdefault("upto", str(newest))
    path = f"{request.path}?{frozen.urlencode()}"
    fixed = request.build_absolute_uri(path) if request.path in _FREEZABLE_PATHS else ""
    live = request.build_absolute_uri()
    return {"saved": SavedViews(list_views(user), user.pk, request.get_full_path(), live, fixed, newest)}


def _find_place(path: str) -> Place | None:
    for place in PLACES:
        prefixes = (place.url, *place.prefixes, *(url for tab in place.tabs for url in (tab.url, *tab.prefixes)))
        if _is_within(path, prefixes):
            return place
    return None


def _is_within(path: str, prefixes: tuple[str, ...]) -> bool:
    return path.startswith(prefixes)
