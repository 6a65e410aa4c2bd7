"""The compare page: its address is its state, and it says no more than the figures."""

import pytest
from django.test import Client

from tests.factories import make_cell, make_config, make_published_snapshot, make_run, make_trial, make_trials
from tests.page_html import read_html

pytestmark = pytest.mark.django_db


def address(first: tuple[int, int], second: tuple[int, int]) -> str:
    runs = []
    for passed, failed in (first, second):
        run = make_run()
        make_trials(make_cell(make_config(run)), **{"pass": passed, "fail": failed})
        runs.append(run.pk)
    return f"/compare/?a_run={runs[0]}&b_run={runs[1]}"


def test_sides_that_cannot_be_told_apart_are_not_ranked(owner_client: Client) -> None:
    text = read_html(owner_client.get(address((36, 4), (40, 0))))
    assert "No difference shown" in text
    assert "p = 0.116" in text
    assert "more trials a side would find 7 points" in text


def test_an_aa_comparison_asks_for_no_other_and_times_stand_on_both_sides(owner_client: Client) -> None:
    text = read_html(owner_client.get(address((38, 2), (40, 0))))
    assert "These two sides measure it." in text
    assert "No A/A repeat yet" not in text
    assert text.partition("p50 latency")[2].partition("p95 latency")[0].count(">1.2 s<") == 2
    assert "[1.4 – open, n = 40]" in text.partition("p95 latency")[2]


def test_a_difference_is_named_with_interval_and_p(owner_client: Client) -> None:
    text = read_html(owner_client.get(address((28, 12), (40, 0))))
    assert "is better: +30.0 points" in text
    assert "p &lt; 0.001" in text


def test_without_sides_the_page_asks_for_them(owner_client: Client) -> None:
    assert "Compare two sides" in read_html(owner_client.get("/compare/"))


def test_what_cannot_be_read_is_left_out_and_named(owner_client: Client) -> None:
    response = owner_client.get("/compare/?a_run=x&b_day=yesterday&metric=luck&points=0")
    assert "Ignored filters: a_run, b_day, metric, points." in read_html(response)


def test_sides_without_anything_in_common_are_said_to_have_nothing(owner_client: Client) -> None:
    assert "No shared scenarios" in read_html(owner_client.get("/compare/?a_run=1&b_run=2"))


def test_the_comparison_can_be_taken_away(owner_client: Client) -> None:
    query = address((28, 12), (40, 0)).partition("?")[2]
    lines = read_html(owner_client.get(f"/compare/export.csv?{query}")).splitlines()
    assert lines[1].startswith("whole,,,28,40,")
    whole = owner_client.get(f"/compare/export.json?{query}").json()["rows"][0]
    assert whole["difference"] == pytest.approx(0.3)
    assert [whole[f"first_p95_ms_{part}"] for part in ("value", "low", "high")] == [1380.0, 1350.0, None]
    assert whole["second_p50_ms_value"] == 1200.0
    assert owner_client.get("/compare/export.csv").status_code == 404


def test_export_has_simultaneous_bounds_beside_each_alone(owner_client: Client) -> None:
    query = address((28, 12), (40, 0)).partition("?")[2]
    whole, alone, *calls = owner_client.get(f"/compare/export.json?{query}").json()["rows"]
    assert (whole["low_simultaneous"], whole["comparisons"]) == (whole["low"], 1)
    assert alone["p_corrected"] == alone["p"]
    beside = [row for row in calls if row["comparisons"]]
    assert beside
    for row in beside:
        assert row["low_simultaneous"] < row["low"] < row["high"] < row["high_simultaneous"]
        assert row["p_corrected"] == pytest.approx(min(1, row["comparisons"] * row["p"]))
    for row in (whole, alone, *beside):
        inside = row["low_simultaneous"] <= 0 <= row["high_simultaneous"]
        assert row["difference_shown"] == (not inside) == (row["says"] in ("better", "worse"))


def test_published_rows_are_held_against_each_other_by_their_totals(owner_client: Client) -> None:
    make_published_snapshot(
        ("vendor/a", "default", 36, 10), ("vendor/b", "default", 40, 10), ("vendor/c", "default", 0, 5)
    )
    text = read_html(owner_client.get("/compare/?a_published=p0&b_published=p1"))
    assert "No difference shown" in text
    assert "p = 0.116" in text
    assert "not measured here" in text
    assert "cannot be compared" in read_html(owner_client.get("/compare/?a_published=p0&b_published=p2"))


def test_comparisons_offer_themselves(owner_client: Client) -> None:
    run = make_run()
    for method in ("native", "text_json"):
        make_config(run, method=method)
    text = read_html(owner_client.get("/compare/"))
    assert f"/compare/?run={run.pk}&amp;a_method=native&amp;b_method=text_json" in text


def test_changed_instances_lead_to_their_trials(owner_client: Client) -> None:
    run = make_run(instance_kind="drawn")
    for method, outcome in (("native", "pass"), ("text_json", "fail")):
        cell = make_cell(make_config(run, method=method))
        for seed in range(12):
            make_trial(cell, outcome, instance_kind="drawn", instance_seed=seed)
    text = read_html(owner_client.get(f"/compare/?run={run.pk}&a_method=native&b_method=text_json"))
    assert "regressed" in text
    assert f"/trials/{cell.trials.order_by('pk')[0].pk}/" in text
