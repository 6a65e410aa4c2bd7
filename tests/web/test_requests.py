"""Paths to redirect to: only paths of this site are used."""

import pytest

from toolbench.web.requests import choose_local_path


@pytest.mark.parametrize("path", ["/runs/7/?a=b#c", "/"])
def test_choose_local_path_keeps_path_of_this_site(path: str) -> None:
    assert choose_local_path(path, "/other/") == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "runs/",
        "//evil.example/",
        "/\\evil.example",
        "https://evil.example/",
        "javascript:alert(1)",
        "///evil.example",
    ],
)
def test_choose_local_path_replaces_other_addresses(path: str) -> None:
    assert choose_local_path(path, "/other/") == "/other/"
