"""Context of every page: theme, role, navigation, menu of saved views, and values of a refused form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from django.contrib.auth.models import User
from django.http import HttpRequest

from toolbench.lab.accounts.roles import Role, get_role
from toolbench.lab.models import Run
from toolbench.lab.query_params import clean_text, parse_whole_number
from toolbench.lab.results.saved_views import RESULT_PATHS, ListedView, read_view_menu
from toolbench.web.rendering import is_part_request
from toolbench.web.requests import take_entered_values
from toolbench.web.result_scope import ResultSelection

# Paths of the pages that ?upto=ID limits to the runs up to that id.
_FREEZABLE_PATHS = ("/matrix/", "/trials/", "/failures/", "/latency/", "/compare/", "/decide/")
THEMES = ("system", "light", "dark")
_TABS_OF_A_PHONE = 3  # number of tabs that fit beside the menus


@dataclass(frozen=True, slots=True)
class Tab:
    """Tab of a section: a link to a page.

    Attributes:
        prefixes: path prefixes, in addition to `url`, at which the tab is current.
    """

    label: str
    url: str
    prefixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """Section of the site: a link of the navigation with its tabs.

    Attributes:
        prefixes: path prefixes, in addition to `url` and those of the tabs, at which the section is current.
    """

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
MY_RUNS = Tab("My runs", "/runs/")
SIMULATED_RUNS = Tab("Simulated", "/demo/")
IMPORTED_RUNS = Tab("Imported", "/imported/")
PLAYGROUND_RUNS = Tab("Playground", "/playground/")
RUN_TABS = (MY_RUNS, SIMULATED_RUNS, IMPORTED_RUNS, PLAYGROUND_RUNS, Tab("Schedules", "/schedules/"))
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
SECTIONS = (
    Section("Results", "/matrix/", RESULT_TABS),
    Section("Runs", "/runs/", RUN_TABS, ("/what-if/",)),
    Section("Library", "/scenarios/", LIBRARY_TABS),
    Section("Providers", "/providers/", PROVIDER_TABS),
)


@dataclass(frozen=True, slots=True)
class NavigationLink:
    """Link of the navigation.

    Attributes:
        current: whether the open page belongs to the link's section or tab.
    """

    label: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """Theme, role and navigation of a page.

    Attributes:
        themes: the themes that the menu offers.
        nav: links to the sections; empty without a signed-in user.
        section: label of the current section; empty outside all sections.
        tabs: links to the tabs of the current section; those of Results keep the scope, filter and runs of the page.
        role: the user's role; `VIEWER` without a signed-in user.
    """

    themes: ClassVar[tuple[str, ...]] = THEMES
    theme: str
    nav: tuple[NavigationLink, ...]
    section: str
    tabs: tuple[NavigationLink, ...]
    role: Role

    @property
    def current_tab(self) -> NavigationLink | None:
        """Return the link of the current tab; None outside all tabs."""
        return next((tab for tab in self.tabs if tab.current), None)

    @property
    def late_tabs(self) -> tuple[NavigationLink, ...]:
        """Return the tabs in the menu "More" of a phone: all except the current tab and the first two others.

        Without a current tab, all except the first three.
        """
        others = tuple(tab for tab in self.tabs if not tab.current)
        return others[_TABS_OF_A_PHONE - len(self.tabs) + len(others) :]

    @property
    def is_operator(self) -> bool:
        """Return whether the user may launch runs and change saved data."""
        return self.role != Role.VIEWER

    @property
    def is_owner(self) -> bool:
        """Return whether the user may also change providers, keys and accounts."""
        return self.role == Role.OWNER


def frame(request: HttpRequest) -> dict[str, Frame]:
    """Return the context processor's variable `frame`.

    Without a signed-in user, the frame has no navigation.
    """
    return {"frame": build_frame(request, request.path)}


def build_frame(request: HttpRequest, path: str) -> Frame:
    """Return the frame of a page.

    Args:
        request: the request for the page.
        path: path that determines the current section and tab. It differs from the request's if the page belongs to
            the tab of another page.
    """
    theme = request.COOKIES.get("theme", "system")
    theme = theme if theme in THEMES else "system"
    if not (hasattr(request, "user") and request.user.is_authenticated):
        return Frame(theme, (), "", (), Role.VIEWER)
    current = _find_section(path)
    nav = tuple(NavigationLink(section.label, section.url, section is current) for section in SECTIONS)
    is_result = current is not None and current.tabs is RESULT_TABS
    selection = ResultSelection.from_query(request.GET) if is_result else ResultSelection()
    tabs = tuple(
        NavigationLink(
            tab.label, f"{tab.url}{selection.build_query(tab.url)}", path.startswith((tab.url, *tab.prefixes))
        )
        for tab in (current.tabs if current else ())
    )
    label = current.label if current else ""
    return Frame(theme, nav, label, tabs, get_role(request.user))


def build_run_frame(request: HttpRequest, run: Run) -> Frame:
    """Return the frame of a page about a run; the current tab is that of the list with this run."""
    return build_frame(request, find_list_tab(run).url)


def find_list_tab(run: Run) -> Tab:
    """Return the tab whose page lists the run."""
    if run.imported:
        return IMPORTED_RUNS
    if run.purpose == Run.PLAYGROUND:
        return PLAYGROUND_RUNS
    return SIMULATED_RUNS if run.simulated else MY_RUNS


@dataclass(frozen=True, slots=True)
class SavedViews:
    """Menu of a page of results: saved views, and addresses of the page to share.

    Attributes:
        user_id: id of the user, which the menu compares with the owners of the views.
        address: path and query string of the page.
        live_address: address of the page without ?upto=, which also shows later runs.
        frozen_address: address that shows only runs up to `last_run`; empty if the page cannot be limited.
        last_run: run id of ?upto=; if it is missing or not a number, the id of the newest run; 0 without runs.
    """

    views: Sequence[ListedView]
    user_id: int
    address: str
    live_address: str
    frozen_address: str
    last_run: int


def saved(request: HttpRequest) -> dict[str, SavedViews | None]:
    """Return the context processor's variable `saved`.

    The variable is None on pages that are not in RESULT_PATHS, and without a signed-in user.
    """
    user = getattr(request, "user", None)
    if request.path not in RESULT_PATHS or not isinstance(user, User):
        return {"saved": None}
    menu, live_query = read_view_menu(user), request.GET.copy()
    upto = parse_whole_number(clean_text(live_query.get("upto", "")))
    last_run = menu.newest_run if upto is None else upto
    live_query.pop("upto", None)
    frozen_query = live_query.copy()
    frozen_query["upto"] = str(last_run)
    live_path = f"{request.path}?{live_query.urlencode()}".removesuffix("?")
    frozen_path = f"{request.path}?{frozen_query.urlencode()}"
    return {
        "saved": SavedViews(
            views=menu.views,
            user_id=user.pk,
            address=request.get_full_path(),
            live_address=live_path,
            frozen_address=frozen_path if request.path in _FREEZABLE_PATHS else "",
            last_run=last_run,
        )
    }


def entered_values(request: HttpRequest) -> dict[str, Mapping[str, object]]:
    """Return the context processor's variables `entered` and `entered_lists`.

    For the refused form that redirected to this page, `entered` has the last value of each field, and `entered_lists`
    all values of each field. Both are empty without a refused form, and for requests of a part of a page.
    """
    values = {} if is_part_request(request) else take_entered_values(request)
    return {"entered": {name: texts[-1] for name, texts in values.items() if texts}, "entered_lists": values}


def _find_section(path: str) -> Section | None:
    for section in SECTIONS:
        tab_prefixes = (prefix for tab in section.tabs for prefix in (tab.url, *tab.prefixes))
        if path.startswith((section.url, *section.prefixes, *tab_prefixes)):
            return section
    return None
