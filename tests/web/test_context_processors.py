"""Frame of every page: theme, navigation and tabs."""

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.test import RequestFactory

from toolbench.web.context_processors import frame


@pytest.mark.parametrize(("cookie", "theme"), [("dark", "dark"), ("<b>", "system")])
def test_frame_takes_theme_of_cookie_or_system(cookie: str, theme: str) -> None:
    request = RequestFactory().get("/")
    request.COOKIES["theme"] = cookie
    assert frame(request)["frame"].theme == theme


@pytest.mark.parametrize(
    ("path", "section", "tab"),
    [
        ("/matrix/", "Results", ["Matrix"]),
        ("/trials/3/", "Results", ["Trials"]),
        ("/steps/3/request/", "Results", ["Trials"]),
        ("/runs/new/", "Runs", ["My runs"]),
        ("/demo/", "Runs", ["Simulated"]),
        ("/what-if/", "Runs", []),
        ("/presets/", "Library", ["Presets"]),
        ("/probes/1/", "Providers", ["Providers"]),
        ("/", "", []),
        ("/settings/people/", "", []),
    ],
)
def test_frame_marks_section_and_tab_of_path(path: str, section: str, tab: list[str]) -> None:
    request = RequestFactory().get(path)
    request.user = User(username="owner")
    found = frame(request)["frame"]
    assert found.section == section
    assert [link.label for link in found.nav if link.current] == [section] * bool(section)
    assert [link.label for link in found.tabs if link.current] == tab


def test_frame_without_sign_in_has_no_navigation() -> None:
    request = RequestFactory().get("/sign-in/")
    request.user = AnonymousUser()
    assert frame(request)["frame"].nav == ()


@pytest.mark.parametrize(
    ("path", "late"),
    [
        ("/matrix/", ["Latency", "Compare", "Decide", "Trend"]),
        ("/compare/", ["Failures", "Latency", "Decide", "Trend"]),
        ("/what-if/", ["Playground", "Schedules"]),
        ("/providers/", []),
        ("/", []),
    ],
)
def test_frame_leaves_current_tab_out_of_phone_menu(path: str, late: list[str]) -> None:
    request = RequestFactory().get(path)
    request.user = User(username="owner")
    assert [link.label for link in frame(request)["frame"].late_tabs] == late
