"""What the result tabs keep, scope and runs among it, and the switch between scopes."""

import re

import pytest
from django.http import QueryDict
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_model, make_run, make_trials, recompute_stale_cells
from tests.page_html import read_html
from toolbench.lab.models import Run
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.failures.query import FailuresQuery
from toolbench.lab.results.scopes import DECIDE_SCOPES
from toolbench.lab.results.trial_list import scopes
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.web.context_processors import RESULT_TABS
from toolbench.web.result_scope import (
    ResultSelection,
    ScopeLink,
    link_other_scopes,
    list_compare_scopes,
    list_page_scopes,
    list_trial_scopes,
)

URLS = tuple(tab.url for tab in RESULT_TABS)
KEPT_BY_TRIALS = {
    "model": ["a", "b"],
    "outcome": ["fail"],
    "search": ["city"],
    "sort": ["slow"],
    "after": ["2026-11-01"],
}
KEPT_BY_COMPARE = {"model": ["a", "b"], "scenario": ["happy_path"], "metric": ["delivered"], "by": ["strategy"]}


@pytest.mark.parametrize(
    ("query", "selection"),
    [
        ("", ResultSelection()),
        ("run=3", ResultSelection(runs=(3,))),
        ("run=3&run=4,5&scope=runs", ResultSelection(runs=(3, 4, 5))),
        ("runs=3,4&outcome=fail", ResultSelection(runs=(3, 4))),
        ("scope=demo", ResultSelection("demo")),
        ("demo=1", ResultSelection("demo")),
        ("imported=1", ResultSelection("imported")),
        ("scope=published", ResultSelection("published")),
        ("scope=all&run=x&demo=2", ResultSelection()),
    ],
)
def test_result_selection_from_query_reads_address_of_any_tab(query: str, selection: ResultSelection) -> None:
    assert ResultSelection.from_query(QueryDict(query)) == selection


@pytest.mark.parametrize(
    "selection", [ResultSelection(runs=(3,)), ResultSelection(runs=(3, 4)), ResultSelection("demo")]
)
def test_result_selection_build_query_is_read_back_as_same(selection: ResultSelection) -> None:
    for url in URLS:
        query = selection.build_query(url).removeprefix("?")
        if query:
            assert ResultSelection.from_query(QueryDict(query)) == selection, url


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


def read_words(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", page).split())


def link_trials(query: str) -> tuple[ScopeLink, ...]:
    return list_trial_scopes(TrialFilter.from_query(QueryDict(query)))


def link_sides(query: str) -> tuple[ScopeLink, ...]:
    return list_compare_scopes(CompareQuery.from_query(QueryDict(query)))


def read_pairs(query: str) -> dict[str, list[str]]:
    return {name: list(values) for name, values in QueryDict(query).lists()}


def build_query(values: dict[str, list[str]]) -> str:
    query = QueryDict(mutable=True)
    for name, texts in values.items():
        query.setlist(name, texts)
    return query.urlencode()


@pytest.mark.parametrize("scope", [{}, {"demo": ["1"]}, {"imported": ["1"]}])
def test_list_trial_scopes_keeps_all_filters(scope: dict[str, list[str]]) -> None:
    links = link_trials(build_query(KEPT_BY_TRIALS | scope))
    assert [link.label for link in links] == ["My runs", "Simulated", "Imported"]
    queries = [read_pairs(link.query) for link in links]
    assert queries == [KEPT_BY_TRIALS, KEPT_BY_TRIALS | {"demo": ["1"]}, KEPT_BY_TRIALS | {"imported": ["1"]}]
    assert [link.is_current for link in links] == [query == KEPT_BY_TRIALS | scope for query in queries]


@pytest.mark.parametrize(
    ("query", "label"),
    [
        ("run=2", "Run 2"),
        ("runs=2,3", "Run 2, 3"),
        ("runs=2,3,4,5", "4 runs"),
        ("cells=3-7", "Chosen cells"),
        ("config=3", "Chosen configurations"),
        ("scope=all", "All runs"),
    ],
)
def test_list_trial_scopes_of_given_runs_has_link_of_their_own(query: str, label: str) -> None:
    links = link_trials(f"{query}&outcome=fail")
    assert [(link.label, read_pairs(link.query)) for link in links if link.is_current] == [
        (label, read_pairs(f"{query}&outcome=fail"))
    ]
    others = [read_pairs(link.query) for link in links if not link.is_current]
    assert others == [{"outcome": ["fail"]} | scope for scope in ({}, {"demo": ["1"]}, {"imported": ["1"]})]


@pytest.mark.parametrize("scope", [{}, {"scope": ["published"]}, {"demo": ["1"]}])
def test_list_compare_scopes_keeps_all_filters(scope: dict[str, list[str]]) -> None:
    links = link_sides(build_query(KEPT_BY_COMPARE | scope))
    assert [link.label for link in links] == ["My runs", "Published", "Simulated"]
    queries = [read_pairs(link.query) for link in links]
    assert queries == [KEPT_BY_COMPARE, KEPT_BY_COMPARE | {"scope": ["published"]}, KEPT_BY_COMPARE | {"demo": ["1"]}]
    assert [link.is_current for link in links] == [query == KEPT_BY_COMPARE | scope for query in queries]


@pytest.mark.parametrize(
    ("query", "current", "kept"),
    [
        ("run=2&a_model=x&b_model=y&profile=cold", "Run 2", {"profile": ["cold"]}),
        ("a_run=2&b_run=1", "Run 2, 1", {}),
        ("a_config=2&b_config=1", "Chosen configurations", {}),
        ("a_run=2&b_model=x&demo=1", "Simulated", {}),
        ("a_published=p0&b_published=p1", "Published", {}),
    ],
)
def test_list_compare_scopes_leaves_out_runs_and_sides(query: str, current: str, kept: dict[str, list[str]]) -> None:
    links = link_sides(query)
    assert [link.label for link in links if link.is_current] == [current]
    assert read_pairs(links[0].query) == kept


@pytest.mark.django_db
def test_empty_list_says_in_which_scope_trials_are(owner_client: Client) -> None:
    make_trials(make_cell(make_config(make_run(simulated=True), make_model("perfect"))), **{"pass": 3, "fail": 2})
    recompute_stale_cells()
    for query, words, count in (
        ("", "5 trials match in Simulated.", 5),
        ("imported=1", "5 trials match in Simulated.", 5),
        ("outcome=fail&model=perfect", "2 trials match in Simulated.", 2),
    ):
        page = read_html(owner_client.get(f"/trials/?{query}"))
        assert words in read_words(page), query
        (address,) = re.findall(r'href="([^"]+)">Simulated</a>\.', page)
        found = read_html(owner_client.get(f"/trials/{address.replace('&amp;', '&')}"))
        assert f'data-total="{count}"' in found, address
    for query in ("model=nobody", "run=99"):
        words = read_words(read_html(owner_client.get(f"/trials/?{query}")))
        assert "match in" not in words, query
        assert "Other scopes" not in words, query


@pytest.mark.django_db
def test_empty_list_names_all_other_scopes_that_match(owner_client: Client) -> None:
    for fields, passed in (({"simulated": True}, 1), ({"imported": True}, 3), ({"purpose": Run.PLAYGROUND}, 2)):
        make_trials(make_cell(make_config(make_run(**fields))), **{"pass": passed})
    assert "1 trial matches in Simulated, 3 in Imported." in read_words(read_html(owner_client.get("/trials/")))


@pytest.mark.django_db
def test_empty_search_links_other_scopes_without_counting(owner_client: Client) -> None:
    page = read_html(owner_client.get("/trials/?search=model:nobody"))
    assert "Other scopes: Simulated, Imported." in read_words(page)
    assert 'href="?search=model%3Anobody&amp;demo=1">Simulated</a>,' in page


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("query", "queries"), [("", 1), ("outcome=fail&seen=unknown_argument", 1), ("search=x", 0), ("alike=1", 0)]
)
def test_link_other_scopes_takes_one_query_and_none_for_search(
    django_assert_num_queries: DjangoAssertNumQueries, query: str, queries: int
) -> None:
    make_trials(make_cell(make_config(make_run(simulated=True))), **{"pass": 1})
    with django_assert_num_queries(queries):
        link_other_scopes(TrialFilter.from_query(QueryDict(query)))


@pytest.mark.django_db
def test_link_other_scopes_of_more_trials_than_counted_has_no_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    make_trials(make_cell(make_config(make_run(simulated=True))), **{"pass": 3})
    monkeypatch.setattr(scopes, "MAX_COUNTED_TRIALS", 3)
    assert [(link.label, link.count) for link in link_other_scopes(TrialFilter())] == [("Simulated", 3)]
    monkeypatch.setattr(scopes, "MAX_COUNTED_TRIALS", 2)
    links = [(link.label, link.count) for link in link_other_scopes(TrialFilter())]
    assert links == [("Simulated", None), ("Imported", None)]


@pytest.mark.django_db
def test_clear_link_of_trials_keeps_scope(owner_client: Client) -> None:
    page = read_html(owner_client.get("/trials/?demo=1&outcome=fail&density=comfortable"))
    assert re.findall(r'href="([^"]+)">Clear the filters<', page) == ["/trials/?demo=1&amp;density=comfortable"] * 2


@pytest.mark.django_db
def test_compare_shows_simulated_sides_from_switch(owner_client: Client) -> None:
    run = make_run(simulated=True)
    for name in ("perfect", "flaky"):
        make_trials(make_cell(make_config(run, make_model(name))), **{"pass": 3, "fail": 2})
    recompute_stale_cells()
    page = read_html(owner_client.get("/compare/?scenario=happy_path&metric=delivered"))
    assert "Compare sides" in page
    switch = page.partition('aria-label="Scope"')[2].partition("</nav>")[0]
    addresses = re.findall(r'href="([^"]+)"', switch)
    assert len(addresses) == 3
    shown = read_html(owner_client.get(f"/compare/{addresses[2].replace('&amp;', '&')}"))
    assert "flaky against perfect" in " ".join(shown.split()) or "perfect against flaky" in " ".join(shown.split())


@pytest.mark.django_db
@pytest.mark.parametrize("simulated", [True, False])
def test_list_of_run_says_once_that_it_is_simulated(owner_client: Client, simulated: bool) -> None:
    run = make_run(simulated=simulated)
    make_trials(make_cell(make_config(run)), **{"pass": 2})
    page = read_html(owner_client.get(f"/trials/?run={run.pk}"))
    assert ("Simulated runs only." in page) == simulated
    assert 'class="chip">simulated<' not in page
    empty = read_html(owner_client.get(f"/trials/?run={run.pk}&outcome=infra"))
    assert "No trial matches" in empty
    assert ("Simulated runs only." in empty) == simulated
    mixed = read_html(owner_client.get(f"/trials/?runs={run.pk}"))
    assert ('class="chip">simulated<' in mixed) == simulated


@pytest.mark.parametrize(
    ("query", "labels", "current"),
    [
        (DecideQuery(), ["My runs", "Simulated"], "My runs"),
        (DecideQuery(scope="runs", runs=(4,)), ["My runs", "Run 4", "Simulated"], "Run 4"),
    ],
)
def test_list_page_scopes_of_decide_has_its_scopes(query: DecideQuery, labels: list[str], current: str) -> None:
    links = list_page_scopes(query, DECIDE_SCOPES)
    assert [link.label for link in links] == labels
    assert [link.label for link in links if link.is_current] == [current]


def test_list_page_scopes_keeps_filter_and_clears_fields() -> None:
    query = FailuresQuery.from_query(QueryDict("run=2,3,4,5&by=model&model=a"))
    links = list_page_scopes(query, run=None)
    assert [link.label for link in links] == ["My runs", "4 runs", "Published", "Simulated", "Imported"]
    assert read_pairs(links[0].query) == {"by": ["model"], "model": ["a"]}
    assert read_pairs(links[3].query) == {"scope": ["demo"], "by": ["model"], "model": ["a"]}


@pytest.mark.django_db
@pytest.mark.parametrize("url", ["/matrix/", "/failures/", "/latency/", "/compare/"])
def test_scope_button_names_current_scope(owner_client: Client, url: str) -> None:
    page = read_html(owner_client.get(f"{url}?scope=demo"))
    (button,) = re.findall(r'<button class="btn view-open".*?</button>', page, re.DOTALL)
    assert "Simulated" in read_words(button)


@pytest.mark.django_db
@pytest.mark.parametrize("url", ["/matrix/", "/failures/", "/latency/", "/decide/"])
def test_scope_of_named_runs_is_read_by_other_tabs(owner_client: Client, url: str) -> None:
    run = make_run()
    make_trials(make_cell(make_config(run)), **{"pass": 2})
    assert "Ignored filters" not in read_html(owner_client.get(f"{url}?scope=runs&run={run.pk}"))


@pytest.mark.django_db
def test_list_of_trials_reads_scope_of_other_tabs(owner_client: Client) -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 2})
    make_trials(make_cell(make_config(make_run(simulated=True))), **{"pass": 3})
    page = read_html(owner_client.get("/trials/?scope=demo"))
    assert 'data-total="3"' in page
    assert "Ignored filters" not in page
