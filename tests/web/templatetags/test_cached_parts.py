"""Parts of pages that are cached in memory."""

from uuid import uuid4

from django.template import engines

from toolbench.web.templatetags.cached_parts import include_cached

NAME = "_retries.html"
UNKNOWN = {"retries_known": False}


def test_include_cached_reuses_part_of_equal_version() -> None:
    version = uuid4()
    first = include_cached(NAME, version, 1, counts=UNKNOWN, query="")
    assert "answers with status 429 and 5xx: unknown" in first
    assert include_cached(NAME, version, 1, counts=UNKNOWN, query="other") is first
    assert include_cached(NAME, version, 2, counts=UNKNOWN, query="") is not first
    assert include_cached(NAME, uuid4(), 1, counts=UNKNOWN, query="") is not first


def test_include_cached_without_version_renders_again() -> None:
    first, second = (include_cached(NAME, None, counts=UNKNOWN, query="") for _ in range(2))
    assert first == second
    assert first is not second


def test_include_cached_does_not_escape_part_again() -> None:
    source = '{% load cached_parts %}{% include_cached "_retries.html" None counts=counts query="" %}'
    assert "<span" in engines["django"].from_string(source).render({"counts": UNKNOWN})
