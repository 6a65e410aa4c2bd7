"""The choices of a scope: what they offer, and that every page of results counts what they choose."""

from datetime import UTC, date, datetime

import pytest
from django.http import QueryDict
from django.test import Client

from tests.factories import make_cell, make_config, make_model, make_run, make_trials, recompute_stale_cells
from tests.page_html import read_html
from toolbench.lab.metrics.pools import refresh_pools
from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter
from toolbench.lab.models import Run
from toolbench.lab.results.decide.candidates import get_candidate_pool
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.failures.page import get_failures
from toolbench.lab.results.failures.query import FailuresQuery
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.table import get_matrix
from toolbench.lab.results.scope_chips import get_scope_chips
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials

pytestmark = pytest.mark.django_db
ADDRESSES = ("/matrix/", "/matrix/?view=bars", "/trials/", "/failures/", "/decide/", "/latency/")


@pytest.fixture(params=[False, True], ids=["from cells", "from pools"])
def runs(request: pytest.FixtureRequest) -> list[Run]:
    """Return three runs of ten days, each with one model that passed twice and failed once."""
    made = []
    for day, name in ((1, "alpha"), (5, "beta"), (10, "gamma")):
        run = make_run(state=Run.State.FINISHED)
        Run.objects.filter(pk=run.pk).update(created_at=datetime(2026, 3, day, 23, 30, tzinfo=UTC))
        cell = make_cell(make_config(run, make_model(f"vendor/{name}"), profile=name[0]))
        make_trials(cell, **{"pass": 2, "fail": 1})
        made.append(run)
    recompute_stale_cells()
    if request.param:
        refresh_pools()
    return made


@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        ("", "abc"),
        ("model=vendor/alpha", "a"),
        ("model=vendor/alpha&model=vendor/beta", "ab"),
        ("profile=g&model=vendor/alpha", ""),
        ("scenario=happy_path", "abc"),
        ("scenario=other", ""),
        ("after=2026-03-05", "bc"),
        ("before=2026-03-05", "ab"),
        ("after=2026-03-02&before=2026-03-09&strategy=production", "b"),
    ],
)
def test_every_page_counts_the_chosen_trials_alone(query: str, chosen: str, runs: list[Run]) -> None:
    given = QueryDict(query)
    matrix = get_matrix(MatrixQuery.from_query(QueryDict(f"scope=real&{query}")))
    names = "".join(sorted(row.name[0] for row in matrix.rows)).replace("g", "c")
    assert names == chosen
    for row in matrix.rows:
        assert get_trials(TrialFilter.from_query(QueryDict(row.trials_query))).total == row.tally.trial_count
    assert get_trials(TrialFilter.from_query(given)).total == 3 * len(chosen)
    assert len(get_candidate_pool(DecideQuery.from_query(given)).candidates) == len(chosen)
    for candidate in get_candidate_pool(DecideQuery.from_query(given)).candidates:
        assert (
            get_trials(TrialFilter.from_query(QueryDict(candidate.trial_filter.query()))).total
            == candidate.tally.trial_count
        )
    assert get_failures(FailuresQuery.from_query(given)).uncounted_failures == len(chosen)


def test_chips_offer_what_was_tried_and_mark_what_is_chosen(runs: list[Run]) -> None:
    chosen, _ = ResultFilter.from_query(QueryDict("model=vendor/beta&model=vendor/gone&after=2026-03-02"))
    scope = get_scope_chips(chosen, kind="real")
    models, profiles = scope.chips
    assert models.options == (
        ("vendor/alpha", False),
        ("vendor/beta", True),
        ("vendor/gamma", False),
        ("vendor/gone", True),
    )
    assert (profiles.label, profiles.chosen_count, scope.after, scope.before) == ("Profiles", 0, "2026-03-02", "")
    assert get_scope_chips(NO_FILTER, kind="demo").chips == ()
    assert get_scope_chips(NO_FILTER, kind="real", runs=(runs[0].pk,)).chips == ()


def test_query_strings_read_back_as_the_same_filter() -> None:
    query = "model=a&model=b%2C+c&profile=x&strategy=raw&scenario=s&after=2026-01-02&before=2026-02-03"
    chosen, ignored = ResultFilter.from_query(QueryDict(query))
    assert (chosen.models, chosen.after, ignored) == (("a", "b, c"), date(2026, 1, 2), ())
    for build in (MatrixQuery.from_query, DecideQuery.from_query, FailuresQuery.from_query, TrialFilter.from_query):
        read = build(QueryDict(query))
        assert build(QueryDict(read.query())) == read, build
    assert ResultFilter.from_query(QueryDict("after=2026-13-01&before=x"))[1] == ("after", "before")


@pytest.mark.parametrize("address", ADDRESSES)
def test_pages_keep_the_choice_in_the_links_to_the_other_tabs(
    address: str, owner_client: Client, runs: list[Run]
) -> None:
    joined = "&" if "?" in address else "?"
    page = read_html(owner_client.get(f"{address}{joined}model=vendor/alpha&after=2026-02-01"))
    for tab in ("/matrix/", "/trials/", "/failures/", "/decide/"):
        assert f'href="{tab}?model=vendor%2Falpha&amp;after=2026-02-01"' in page, tab


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("query", ["model=%00", "after=0000-00-00", "before=9999-12-31", "after=0001-01-01", "model="])
def test_unreadable_values_are_ignored(address: str, query: str, owner_client: Client) -> None:
    joined = "&" if "?" in address else "?"
    assert owner_client.get(f"{address}{joined}{query}").status_code == 200
