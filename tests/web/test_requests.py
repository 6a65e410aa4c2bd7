"""Only paths of this site are gone to."""

import pytest

from toolbench.web.requests import choose_local_path


@pytest.mark.parametrize("given", ["/runs/7/?a=b#c", "/"])
def test_a_path_of_this_site_is_kept(given: str) -> None:
    assert choose_local_path(given, "/other/") == given


@pytest.mark.parametrize(
    "given",
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
def test_anything_else_is_not(given: str) -> None:
    assert choose_local_path(given, "/other/") == "/other/"
