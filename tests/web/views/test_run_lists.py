"""Lists of runs: the tab and the breadcrumb that lead to them, and their button for a new run."""

import re
from typing import Any

import pytest
from django.test import Client

from tests.factories import make_run
from tests.page_html import read_html

pytestmark = pytest.mark.django_db

LISTS_OF_RUNS = [
    ({}, "My runs", "/runs/"),
    ({"simulated": True}, "Simulated", "/demo/"),
    ({"imported": True}, "Imported", "/imported/"),
    ({"imported": True, "simulated": True}, "Imported", "/imported/"),
    ({"purpose": "playground"}, "Playground", "/playground/"),
    ({"purpose": "playground", "simulated": True}, "Playground", "/playground/"),
]


@pytest.mark.parametrize(("fields", "tab", "path"), LISTS_OF_RUNS)
@pytest.mark.parametrize("page", ["", "metrics/", "judgements/", "missing/"])
def test_pages_of_run_mark_tab_of_its_list(
    owner_client: Client, fields: dict[str, Any], tab: str, path: str, page: str
) -> None:
    frame = owner_client.get(f"/runs/{make_run(**fields).pk}/{page}").context["frame"]
    assert [(link.label, link.url) for link in frame.tabs if link.current] == [(tab, path)]


@pytest.mark.parametrize(("fields", "tab", "path"), LISTS_OF_RUNS)
@pytest.mark.parametrize("page", ["", "missing/"])
def test_breadcrumb_of_run_begins_with_its_list(
    owner_client: Client, fields: dict[str, Any], tab: str, path: str, page: str
) -> None:
    text = read_html(owner_client.get(f"/runs/{make_run(**fields).pk}/{page}"))
    breadcrumb = text.partition('aria-label="Breadcrumb"')[2].partition("</nav>")[0]
    assert re.findall(r'href="([^"]+)"\s*>([^<]+)<', breadcrumb)[0] == (path, tab)


def test_list_of_runs_by_unused_label_offers_new_run_on_phone(owner_client: Client) -> None:
    assert "phone-only" not in read_html(owner_client.get("/runs/"))
    assert "phone-only" in read_html(owner_client.get("/runs/?label=unused"))
