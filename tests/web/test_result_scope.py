"""Result scope: the choice of runs that the result tabs keep."""

import re

import pytest
from django.http import QueryDict
from django.test import Client

from tests.factories import make_cell, make_config, make_model, make_run, make_trials, recompute_stale_cells
from tests.page_html import read_html
from toolbench.web.context_processors import RESULT_TABS
from toolbench.web.result_scope import ResultScope

URLS = tuple(tab.url for tab in RESULT_TABS)


@pytest.mark.parametrize(
    ("query", "scope"),
    [
        ("", ResultScope()),
        ("run=3", ResultScope(runs=(3,))),
        ("run=3&run=4,5&scope=runs", ResultScope(runs=(3, 4, 5))),
        ("runs=3,4&outcome=fail", ResultScope(runs=(3, 4))),
        ("scope=demo", ResultScope("demo")),
        ("demo=1", ResultScope("demo")),
        ("imported=1", ResultScope("imported")),
        ("scope=published", ResultScope("published")),
        ("scope=all&run=x&demo=2", ResultScope()),
    ],
)
def test_result_scope_from_query_reads_address_of_any_tab(query: str, scope: ResultScope) -> None:
    assert ResultScope.from_query(QueryDict(query)) == scope


@pytest.mark.parametrize("scope", [ResultScope(runs=(3,)), ResultScope(runs=(3, 4)), ResultScope("demo")])
def test_result_scope_build_query_is_read_back_as_same_scope(scope: ResultScope) -> None:
    for url in URLS:
        query = scope.build_query(url).removeprefix("?")
        if query:
            assert ResultScope.from_query(QueryDict(query)) == scope, url


@pytest.mark.django_db
def test_result_tabs_show_only_trials_of_scope(owner_client: Client) -> None:
    runs = [make_run(), make_run(), make_run(simulated=True)]
    for run, name in zip(runs, ("alpha", "beta", "gamma"), strict=True):
        make_trials(make_cell(make_config(run, make_model(f"vendor/{name}"))), **{"pass": 3, "fail": 2})
    recompute_stale_cells()
    for start, shown, hidden in (
        (f"/matrix/?run={runs[0].pk}", "alpha", ("beta", "gamma")),
        (f"/trials/?runs={runs[1].pk}", "beta", ("alpha", "gamma")),
        ("/trials/?demo=1", "gamma", ("alpha", "beta")),
    ):
        tabs = re.findall(r'href="(/[a-z]+/\?[^"]+)"[^>]*>(?:Matrix|Trials)<', read_html(owner_client.get(start)))
        assert len(tabs) == 2, start
        for address in tabs:
            page = read_html(owner_client.get(address.replace("&amp;", "&")))
            rows = "".join(re.findall(r"<tbody>.*</tbody>", page, re.DOTALL))
            assert shown in rows, address
            assert not any(name in rows for name in hidden), address
