"""Filter chips: their options, and the trials that every result page counts for a choice."""

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
from toolbench.lab.results.filter_chips import get_filter_chips
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.table import get_matrix
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials

pytestmark = pytest.mark.django_db
ADDRESSES = ("/matrix/", "/matrix/?view=bars", "/trials/", "/failures/", "/decide/", "/latency/")


@pytest.fixture(params=[False, True], ids=["from cells", "from pools"])
def runs(request: pytest.FixtureRequest) -> list[Run]:
    """Return three runs of ten days, each with one model that passed twice and failed once."""
    finished_runs = []
    for day, name in ((1, "alpha"), (5, "beta"), (10, "gamma")):
        run = make_run(state=Run.State.FINISHED)
        Run.objects.filter(pk=run.pk).update(created_at=datetime(2026, 3, day, 23, 30, tzinfo=UTC))
        cell = make_cell(make_config(run, make_model(f"vendor/{name}"), profile=name[0]))
        make_trials(cell, **{"pass": 2, "fail": 1})
        finished_runs.append(run)
    recompute_stale_cells()
    if request.param:
        refresh_pools()
    return finished_runs


@pytest.mark.parametrize(
    ("query", "expected"),
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
def test_result_pages_count_only_trials_of_the_chosen_scope(query: str, expected: str, runs: list[Run]) -> None:
    scope_query = QueryDict(query)
    matrix = get_matrix(MatrixQuery.from_query(QueryDict(f"scope=real&{query}")))
    names = "".join(sorted(row.name[0] for row in matrix.rows)).replace("g", "c")
    assert names == expected
    for row in matrix.rows:
        assert get_trials(TrialFilter.from_query(QueryDict(row.trials_query))).total == row.tally.trial_count
    assert get_trials(TrialFilter.from_query(scope_query)).total == 3 * len(expected)
    assert len(get_candidate_pool(DecideQuery.from_query(scope_query)).candidates) == len(expected)
    for candidate in get_candidate_pool(DecideQuery.from_query(scope_query)).candidates:
        assert (
            get_trials(TrialFilter.from_query(QueryDict(candidate.trial_filter.query()))).total
            == candidate.tally.trial_count
        )
    assert get_failures(FailuresQuery.from_query(scope_query)).uncounted_failures == len(expected)


def test_filter_chips_offer_tried_values_and_mark_chosen_ones(runs: list[Run]) -> None:
    result_filter, _ = ResultFilter.from_query(QueryDict("model=vendor/beta&model=vendor/gone&after=2026-03-02"))
    scope = get_filter_chips(result_filter, scope="real")
    models, profiles = scope.chips
    assert models.options == (
        ("vendor/alpha", False),
        ("vendor/beta", True),
        ("vendor/gamma", False),
        ("vendor/gone", True),
    )
    assert (profiles.label, profiles.chosen_count, scope.after, scope.before) == ("Profiles", 0, "2026-03-02", "")
    assert get_filter_chips(NO_FILTER, scope="demo").chips == ()
    assert get_filter_chips(NO_FILTER, scope="real", runs=(runs[0].pk,)).chips == ()


def test_result_queries_survive_a_round_trip_through_the_url() -> None:
    query = "model=a&model=b%2C+c&profile=x&strategy=raw&scenario=s&after=2026-01-02&before=2026-02-03"
    result_filter, ignored = ResultFilter.from_query(QueryDict(query))
    assert (result_filter.models, result_filter.after, ignored) == (("a", "b, c"), date(2026, 1, 2), ())
    for build in (MatrixQuery.from_query, DecideQuery.from_query, FailuresQuery.from_query, TrialFilter.from_query):
        built = build(QueryDict(query))
        assert build(QueryDict(built.query())) == built, build
    assert ResultFilter.from_query(QueryDict("after=2026-13-01&before=x&upto=1_0"))[1] == ("after", "before", "upto")


@pytest.mark.parametrize("address", ADDRESSES)
def test_result_pages_keep_the_scope_in_links_to_other_tabs(
    address: str, owner_client: Client, runs: list[Run]
) -> None:
    separator = "&" if "?" in address else "?"
    page = read_html(owner_client.get(f"{address}{separator}model=vendor/alpha&after=2026-02-01"))
    for tab in ("/matrix/", "/trials/", "/failures/", "/decide/"):
        assert f'href="{tab}?model=vendor%2Falpha&amp;after=2026-02-01"' in page, tab


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("query", ["model=%00", "after=0000-00-00", "before=9999-12-31", "after=0001-01-01", "model="])
def test_result_pages_answer_unreadable_scope_values(address: str, query: str, owner_client: Client) -> None:
    separator = "&" if "?" in address else "?"
    assert owner_client.get(f"{address}{separator}{query}").status_code == 200
