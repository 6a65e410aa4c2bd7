"""The frame of every page: the theme and where one is."""

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.test import RequestFactory

from toolbench.web.context_processors import frame


@pytest.mark.parametrize(("cookie", "theme", "following"), [("dark", "dark", "system"), ("<b>", "system", "light")])
def test_the_theme_is_the_cookies_and_an_unknown_one_is_the_systems(cookie: str, theme: str, following: str) -> None:
    request = RequestFactory().get("/")
    request.COOKIES["theme"] = cookie
    found = frame(request)["frame"]
    assert (found.theme, found.next_theme) == (theme, following)


@pytest.mark.parametrize(
    ("path", "label"),
    [("/", "Start"), ("/matrix/", "Matrix"), ("/trials/3/", "Trials"), ("/presets/", "Set-up"), ("/demo/", "Demo")],
)
def test_exactly_one_place_is_current(path: str, label: str) -> None:
    request = RequestFactory().get(path)
    request.user = User(username="owner")
    nav = frame(request)["frame"].nav
    assert [place.label for place in nav if place.current] == [label]


def test_a_stranger_is_shown_no_way_to_pages_that_would_turn_them_away() -> None:
    request = RequestFactory().get("/sign-in/")
    request.user = AnonymousUser()
    assert frame(request)["frame"].nav == ()
