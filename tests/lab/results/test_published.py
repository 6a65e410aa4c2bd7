"""The published matrix: its published figures and those by the rules of Toolbench."""

import re

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from tests.page_html import read_html
from toolbench.lab import builtin_data
from toolbench.lab.models import PublishedSnapshot
from toolbench.lab.results.published import PublishedMatrix, get_published_matrix

pytestmark = pytest.mark.django_db


@pytest.fixture
def published() -> PublishedMatrix:
    builtin_data.load_builtin_data()
    found = get_published_matrix(90)
    assert found is not None
    return found


def test_published_matrix_totals_equal_the_case_study(published: PublishedMatrix) -> None:
    assert (published.overall.k, published.overall.n) == (1198, 1450)
    assert (published.tool.k, published.tool.n) == (1002, 1160)
    assert (published.control.k, published.control.n) == (196, 290)
    assert dict((slug, rate.k) for slug, rate in published.scenarios) == {
        "happy_path": 274,
        "missing_workspace_id": 272,
        "type_error_recovery": 253,
        "long_arguments_guard": 203,
        "chat_only": 196,
    }


def test_published_matrix_page_shows_every_published_category(published: PublishedMatrix, admin_client: Client) -> None:
    page = read_html(admin_client.get("/matrix/?scope=published&view=bars"))
    rows = dict(re.findall(r'id="row-(p\d+)"(.*?)</tr>', page, re.DOTALL))
    assert len(rows) == 29
    shown = {row.key: [f"{name} x{count}" in rows[row.key] for name, count in row.categories] for row in published.rows}
    assert all(all(found) for found in shown.values())
    assert sum("ASSERTION_FAILED x" in html for html in rows.values()) == 12


def test_published_matrix_model_without_tools_is_not_applicable(published: PublishedMatrix) -> None:
    assert (published.applicable.k, published.applicable.n) == (1002, 1120)
    off = [row for row in published.rows if row.not_applicable]
    assert [row.name for row in off] == ["minimax-m2-her"]
    assert dict(off[0].dots) == {"na": 40}


def test_published_matrix_counts_rows_by_overlap_of_intervals(published: PublishedMatrix) -> None:
    assert (published.clear, published.undecided, published.below, published.perfect) == (12, 10, 6, 12)


def test_published_matrix_timeouts_count_only_in_published_rate(
    published: PublishedMatrix,
) -> None:
    grok = next(row for row in published.rows if row.profile == "default" and row.name == "grok-4.1-fast")
    assert (grok.tool.k, grok.tool.n) == (37, 40)
    assert (grok.answered.k, grok.answered.n) == (37, 37)
    assert dict(grok.dots) == {"pass": 37, "fail": 0, "infra": 3}


def test_published_matrix_unpublished_scenario_counts_are_unknown(published: PublishedMatrix) -> None:
    deepseek = next(row for row in published.rows if "deepseek-chat" in row.model)
    assert deepseek.unlisted == 5
    split = dict(deepseek.split)
    assert split["happy_path"] is None
    assert split["missing_workspace_id"] is not None
    assert split["missing_workspace_id"].k == 6


def test_published_matrix_counts_unnamed_trials_as_passes(published: PublishedMatrix) -> None:
    recommended = next(row for row in published.rows if row.profile == "deepseek_v3_2_local_recommended")
    assert {name: rate.k for name, rate in recommended.split if rate} == {
        "happy_path": 10,
        "long_arguments_guard": 6,
        "missing_workspace_id": 10,
        "type_error_recovery": 10,
    }


def test_published_matrix_puts_default_profile_of_each_model_first(published: PublishedMatrix) -> None:
    first_profiles = {row.profile for row in published.rows if not row.repeats_model}
    assert first_profiles == {"default"}
    assert sum(row.repeats_model for row in published.rows) == 29 - 17


def test_published_matrix_quotes_recommendations_verbatim(published: PublishedMatrix) -> None:
    grok = next(row for row in published.recommendations if row.model == "x-ai/grok-4.1-fast")
    assert grok.notes == "Timeouts were the dominant failure mode here (p95 ~125s)."


def test_published_matrix_is_cached_until_snapshot_is_loaded_again(
    published: PublishedMatrix, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        assert get_published_matrix(90) is published
    with django_assert_num_queries(3):
        get_published_matrix(80)
    builtin_data.load_builtin_data()
    assert get_published_matrix(90) is not published


def test_published_matrix_without_snapshot_is_none() -> None:
    PublishedSnapshot.objects.all().delete()
    assert get_published_matrix() is None


def test_published_matrix_36_of_40_is_not_distinguished_from_best(
    published: PublishedMatrix, owner_client: Client
) -> None:
    assert published.best is not None
    assert (published.best.tool.k, published.best.tool.n) == (40, 40)
    assert [row.tool.k for row in published.indistinguishable_from_best] == [39, 38, 37, 36, 35]
    (row,) = (row for row in published.indistinguishable_from_best if row.tool.k == 36)
    text = read_html(owner_client.get("/matrix/?scope=published&view=bars"))
    link = f"/compare/?a_published={row.key}&amp;b_published={published.best.key}"
    assert f'href="/compare/?a_published={published.indistinguishable_from_best[0].key}' in text
    assert f'href="{link}">36/40' in text
    assert "40/40, does not differ significantly from" in text
    assert "Cannot tell" in read_html(owner_client.get(link.replace("&amp;", "&")))
