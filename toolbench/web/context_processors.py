"""Context of the frame of every page: theme and navigation."""

from dataclasses import dataclass

from django.http import HttpRequest

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
        current: whether the link leads to the current page or section.
    """

    label: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """Theme and navigation of a page.

    Attributes:
        nav: empty without a signed-in user.
    """

    theme: str
    next_theme: str
    nav: tuple[NavigationLink, ...]
    setup: tuple[NavigationLink, ...]


def frame(request: HttpRequest) -> dict[str, Frame]:
    """Add `frame` to every template. Without a signed-in user, the main navigation is empty."""
    theme = request.COOKIES.get("theme", "system")
    theme = theme if theme in THEMES else "system"
    is_signed_in = hasattr(request, "user") and request.user.is_authenticated
    sections = NAVIGATION if is_signed_in else ()
    nav = tuple(NavigationLink(label, url, _is_within(request.path, (url, *more))) for label, url, more in sections)
    setup = tuple(NavigationLink(label, url, _is_within(request.path, (url,))) for label, url in SETUP_PAGES)
    return {"frame": Frame(theme, THEMES[(THEMES.index(theme) + 1) % len(THEMES)], nav, setup)}


def _is_within(path: str, urls: tuple[str, ...]) -> bool:
    return any(path == url or (url != "/" and path.startswith(url)) for url in urls)
