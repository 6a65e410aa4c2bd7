"""What every page's frame needs: the theme that was chosen and the way round the site."""

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
    ("Families", "/families/"),
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
    label: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class Frame:
    theme: str
    next_theme: str
    nav: tuple[NavigationLink, ...]
    setup: tuple[NavigationLink, ...]


def frame(request: HttpRequest) -> dict[str, Frame]:
    """Puts `frame` into every template. Whoever is not signed in is shown no way to pages that would turn them away."""
    theme = request.COOKIES.get("theme", "system")
    theme = theme if theme in THEMES else "system"
    known = hasattr(request, "user") and request.user.is_authenticated
    places = NAVIGATION if known else ()
    nav = tuple(NavigationLink(label, url, _is_within(request.path, (url, *more))) for label, url, more in places)
    setup = tuple(NavigationLink(label, url, _is_within(request.path, (url,))) for label, url in SETUP_PAGES)
    return {"frame": Frame(theme, THEMES[(THEMES.index(theme) + 1) % len(THEMES)], nav, setup)}


def _is_within(path: str, urls: tuple[str, ...]) -> bool:
    return any(path == url or (url != "/" and path.startswith(url)) for url in urls)
