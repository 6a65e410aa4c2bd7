"""Context of the frame of every page: theme and navigation."""

from dataclasses import dataclass

from django.http import HttpRequest

from toolbench.lab.accounts.roles import Role, get_role

THEMES = ("system", "light", "dark")
SETUP_PAGES = (
    ("Providers", "/providers/"),
    ("Models", "/models/"),
    ("Sampling profiles", "/profiles/"),
    ("Presets", "/presets/"),
    ("Scenarios", "/scenarios/"),
    ("Cases", "/cases/"),
    ("Effective policy", "/policy/"),
    ("Formats", "/formats/"),
    ("Compatibility", "/compatibility/"),
)
NAVIGATION = (
    ("Start", "/", ()),
    ("Matrix", "/matrix/", ()),
    ("Compare", "/compare/", ()),
    ("Runs", "/runs/", ()),
    ("Trials", "/trials/", ()),
    ("Failures", "/failures/", ()),
    ("Latency", "/latency/", ()),
    ("Decide", "/decide/", ()),
    ("Demo", "/demo/", ()),
    ("Set-up", "/providers/", ("/probes/", *(url for _, url in SETUP_PAGES))),
)


@dataclass(frozen=True, slots=True)
class NavigationLink:
    """A link of the navigation.

    Attributes:
        current: True if the link leads to the current page or section.
    """

    label: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """Theme and navigation of a page.

    Attributes:
        nav: empty without a signed-in user.
        role: the user's role; a viewer's without one.
    """

    theme: str
    next_theme: str
    nav: tuple[NavigationLink, ...]
    setup: tuple[NavigationLink, ...]
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
    """Add `frame` to every template. Without a signed-in user, the main navigation is empty."""
    theme = request.COOKIES.get("theme", "system")
    theme = theme if theme in THEMES else "system"
    known = hasattr(request, "user") and request.user.is_authenticated
    places = NAVIGATION if known else ()
    nav = tuple(NavigationLink(label, url, _is_within(request.path, (url, *more))) for label, url, more in places)
    setup = tuple(NavigationLink(label, url, _is_within(request.path, (url,))) for label, url in SETUP_PAGES)
    role = get_role(request.user) if known else Role.VIEWER
    return {"frame": Frame(theme, THEMES[(THEMES.index(theme) + 1) % len(THEMES)], nav, setup, role)}


def _is_within(path: str, urls: tuple[str, ...]) -> bool:
    return any(path == url or (url != "/" and path.startswith(url)) for url in urls)
