"""The newest trials of a filter, read by one statement."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.newest_trials import NewestTrials, read_first_page, read_newest_trials
from toolbench.lab.results.trial_list.sort_columns import SORTS

pytestmark = pytest.mark.django_db


def read(trial_filter: TrialFilter, *, start: int = 0, size: int = 50, most: int = 100) -> NewestTrials:
    return read_newest_trials(trial_filter, start=start, size=size, max_counted=most)


def test_read_newest_trials_takes_one_query_for_page_and_counts(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    run = make_run()
    make_trials(make_cell(make_config(run, make_model("a"))), **{"pass": 3, "running": 1})
    make_trials(make_cell(make_config(run, make_model("b"))), fail=2)
    with django_assert_num_queries(1):
        found = read(TrialFilter())
    assert (found.total, found.is_more, len(found.ids)) == (6, False, 6)
    assert found.facets["outcome"] == {"pass": 3, "fail": 2, "running": 1}
    assert found.facets["model"] == {"a": 4, "b": 2}
    assert found.facets["scenario"] == {"happy_path": 6}


@pytest.mark.parametrize("sort", ["failed", "order", "slow", "tokens", "scenario", "newest"])
def test_read_newest_trials_of_a_run_can_read_only_its_index(sort: str) -> None:
    run = make_run()
    make_trials(make_cell(make_config(run)), **{"pass": 3, "fail": 2})
    with CaptureQueriesContext(connection) as captured:
        read(TrialFilter(run=run.pk, sort=sort))
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX lab_trial_run_id_383332_idx")  # for few trials, it costs as much
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
        cursor.execute(f"EXPLAIN {captured[0]['sql']}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "trials_of_run on lab_trial" in plan
    assert plan.count(" on lab_trial") == plan.count("Index Only Scan")


@pytest.mark.parametrize("sort", SORTS)
def test_read_newest_trials_pages_continue_each_other_in_every_order(sort: str) -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 4, "fail": 3, "queued": 2})
    all_ids = read(TrialFilter(sort=sort)).ids
    assert [*read(TrialFilter(sort=sort), size=5).ids, *read(TrialFilter(sort=sort), start=5).ids] == list(all_ids)
    assert len(set(all_ids)) == 9


def test_read_newest_trials_counts_and_sorts_only_the_newest() -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, fail=2)
    newer = make_trials(cell, **{"pass": 3})
    found = read(TrialFilter(), most=3)
    assert (found.total, found.is_more, set(found.ids)) == (3, True, {trial.pk for trial in newer})
    assert found.facets["outcome"] == {"pass": 3}


def test_read_newest_trials_without_a_match_is_empty() -> None:
    make_trials(make_cell(make_config(make_run())), fail=1)
    for unmatched in (TrialFilter(alike=999_999), TrialFilter(model="nothing")):
        found = read(unmatched)
        assert (found.ids, found.total, found.is_more) == ((), 0, False)


def test_read_newest_trials_search_may_have_a_percent_sign() -> None:
    make_trials(make_cell(make_config(make_run())), fail=1)
    assert read(TrialFilter(search='"100 %s of it"')).total == 0


@pytest.mark.parametrize("sort", SORTS)
def test_read_first_page_has_order_of_read_newest_trials(
    sort: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_trials(make_cell(make_config(make_run())), **{"pass": 4, "fail": 3, "queued": 2})
    trial_filter = TrialFilter(sort=sort)
    with django_assert_num_queries(1):
        oldest, rows = read_first_page(trial_filter, size=50, max_listed=9)
    assert (oldest, tuple(row[0] for row in rows)) == (0, read(trial_filter).ids)


def test_read_first_page_limited_returns_oldest_listed_id() -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, fail=2)
    newer = [trial.pk for trial in make_trials(cell, **{"pass": 3})]
    oldest, rows = read_first_page(TrialFilter(), size=2, max_listed=3)
    assert oldest == min(newer)
    assert {row[0] for row in rows} < set(newer)
    assert read_first_page(TrialFilter(alike=999_999), size=2, max_listed=3) == (0, [])
