"""Compare page: sides from the address, results, published rows and exports."""

import re

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.factories import (
    make_cell,
    make_config,
    make_model,
    make_published_snapshot,
    make_run,
    make_trial,
    make_trials,
    recompute_stale_cells,
)
from tests.page_html import read_html
from toolbench.lab.metrics.cells import mark_stale
from toolbench.lab.metrics.pools import refresh_pools
from toolbench.lab.models import Cell, Run, Trial

pytestmark = pytest.mark.django_db


def make_comparison_address(first: tuple[int, int], second: tuple[int, int]) -> str:
    runs = []
    for passed, failed in (first, second):
        run = make_run()
        make_trials(make_cell(make_config(run)), **{"pass": passed, "fail": failed})
        runs.append(run.pk)
    return f"/compare/?a_run={runs[0]}&b_run={runs[1]}"


def test_compare_page_does_not_rank_sides_without_difference(owner_client: Client) -> None:
    text = read_html(owner_client.get(make_comparison_address((36, 4), (40, 0))))
    assert "No difference shown" in text
    assert "p = 0.116" in text
    assert "more trials a side would find 7 points" in text


def test_compare_page_of_equal_settings_shows_times_and_asks_no_repeat(owner_client: Client) -> None:
    text = read_html(owner_client.get(make_comparison_address((38, 2), (40, 0))))
    assert "These two sides measure the noise." in text
    assert "No A/A repeat yet" not in text
    assert text.partition("p50 latency")[2].partition("p95 latency")[0].count(">1.2 s<") == 2
    assert "[1.4 – open, n = 40]" in text.partition("p95 latency")[2]


def test_compare_page_shows_difference_with_p_value(owner_client: Client) -> None:
    text = read_html(owner_client.get(make_comparison_address((28, 12), (40, 0))))
    assert "is better: +30.0 points" in text
    assert "p &lt; 0.001" in text


def test_compare_page_shows_no_success_for_cost_without_success(owner_client: Client) -> None:
    url = make_comparison_address((0, 20), (10, 10))
    Trial.objects.update(cost=0.01)
    Cell.objects.update(stale=True)
    recompute_stale_cells()
    row = read_html(owner_client.get(url)).partition("<b>Cost per end-to-end success</b>")[2].partition("</tr>")[0]
    assert row.count("no success") == 1
    assert "<b>$0.02</b>" in row


def test_compare_page_without_sides_asks_for_them(owner_client: Client) -> None:
    make_run()
    page = read_html(owner_client.get("/compare/"))
    assert "Compare sides" in page
    assert "Choose the sides" in page


def test_compare_page_without_runs_offers_new_run(owner_client: Client) -> None:
    page = read_html(owner_client.get("/compare/"))
    assert "No runs to compare yet" in page
    assert "Choose the sides" not in page
    assert 'href="/compare/?scope=published"' in page


def test_compare_page_names_ignored_filters(owner_client: Client) -> None:
    response = owner_client.get("/compare/?a_run=x&b_day=yesterday&metric=luck&points=0")
    assert "Ignored filters: Baseline: Run, Side 2: Day, Metric, Detectable difference." in read_html(response)


def test_compare_page_of_disjoint_sides_says_no_shared_scenarios(owner_client: Client) -> None:
    assert "No shared scenarios" in read_html(owner_client.get("/compare/?a_run=1&b_run=2"))


def test_compare_export_has_counts_and_times_of_both_sides(owner_client: Client) -> None:
    query = make_comparison_address((28, 12), (40, 0)).partition("?")[2]
    lines = read_html(owner_client.get(f"/compare/export.csv?{query}")).splitlines()
    assert lines[1].startswith("whole,,,28,40,")
    whole = owner_client.get(f"/compare/export.json?{query}").json()["rows"][0]
    assert whole["difference"] == pytest.approx(0.3)
    assert [whole[f"first_p95_ms_{part}"] for part in ("value", "low", "high")] == [1380.0, 1350.0, None]
    assert whole["second_p50_ms_value"] == 1200.0
    assert owner_client.get("/compare/export.csv").status_code == 404


def test_compare_export_has_simultaneous_bounds_and_single_bounds(owner_client: Client) -> None:
    query = make_comparison_address((28, 12), (40, 0)).partition("?")[2]
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


def test_compare_page_compares_published_rows_by_totals(owner_client: Client) -> None:
    make_published_snapshot(
        ("vendor/a", "default", 36, 10), ("vendor/b", "default", 40, 10), ("vendor/c", "default", 0, 5)
    )
    text = read_html(owner_client.get("/compare/?a_published=p0&b_published=p1"))
    assert "Cannot tell" in text
    assert "p = 0.116" in text
    assert "not measured here" in text
    for wrong in ("b_published=p2", "b_published=p0", "b_published=p9", "b_model=x", "b_published=p1&c_model=x"):
        assert "cannot be compared" in read_html(owner_client.get(f"/compare/?a_published=p0&{wrong}")), wrong


def test_compare_page_compares_several_published_rows_with_baseline(owner_client: Client) -> None:
    make_published_snapshot(
        ("vendor/a", "default", 36, 10), ("vendor/b", "default", 40, 10), ("vendor/c", "default", 12, 5),
        ("vendor/d", "default", 31, 9), ("vendor/e", "default", 0, 0),
    )  # fmt: skip
    text = read_html(owner_client.get("/compare/?a_published=p1&b_published=p0&c_published=p2"))
    assert "2 published rows against vendor/b · default" in text
    assert "corrected for 2 comparisons" in " ".join(text.split())
    assert "1 worse" in re.sub(r"<[^>]+>|\s+", " ", text).replace("  ", " ")
    assert "?a_published=p0&amp;b_published=p1&amp;c_published=p2" in text  # pins another baseline
    assert "?a_published=p1&amp;b_published=p2" in text  # removes a side
    assert 'name="d_published"' in text
    assert '<option value="p3">vendor/d · default</option>' in text
    assert '<option value="p4">' not in text  # its tools are off
    assert text.count("not published") >= 3 * 3  # p50, tokens and cost of each side


def test_compare_page_of_published_baseline_offers_sides(owner_client: Client) -> None:
    make_published_snapshot(("vendor/a", "default", 36, 10), ("vendor/b", "default", 40, 10))
    text = read_html(owner_client.get("/compare/?a_published=p0&published=p1"))
    assert "No other side yet" in text
    assert "Ignored filters: Published row." in text
    assert 'name="b_published"' in text


def test_compare_page_of_published_scope_has_row_per_success(owner_client: Client) -> None:
    counts = [*range(21, 31), 30]
    make_published_snapshot(*((f"vendor/m{ok}-{place}", "default", ok, 10) for place, ok in enumerate(counts)))
    text = read_html(owner_client.get("/compare/?scope=published"))
    assert "6 published rows against vendor/m30-9 · default" in text
    assert "The 7 rows with the highest success, of 11 rows." in " ".join(text.split())
    assert '<option value="p10">vendor/m30-10 · default</option>' in text


def test_compare_page_suggests_comparisons(owner_client: Client) -> None:
    run = make_run()
    for method, stream in (("native", True), ("text_json", False)):
        make_config(run, method=method, stream=stream)
    repeat = make_run(repeat_of=run)
    text = read_html(owner_client.get("/compare/"))
    assert f"/compare/?run={run.pk}&amp;a_method=native&amp;b_method=text_json" in text
    assert f"method text_json against native, run {run.pk}" in text
    assert f"answers whole against streamed, run {run.pk}" in text
    assert f"Run {repeat.pk} against run {run.pk}, which it repeats" in text
    Run.objects.update(simulated=True)
    text = read_html(owner_client.get("/compare/"))
    assert f"method text_json against native, run {run.pk} (simulated)" in text
    assert f"Run {repeat.pk} against run {run.pk}, which it repeats (simulated)" in text
    Run.objects.filter(pk=run.pk).update(deleted_at=timezone.now())
    assert "which it repeats" not in read_html(owner_client.get("/compare/"))


def test_compare_page_links_changed_instances_to_trials(owner_client: Client) -> None:
    run = make_run(instance_kind="drawn")
    for method, outcome in (("native", "pass"), ("text_json", "fail")):
        cell = make_cell(make_config(run, method=method))
        for seed in range(12):
            make_trial(cell, outcome, instance_kind="drawn", instance_seed=seed)
    text = read_html(owner_client.get(f"/compare/?run={run.pk}&a_method=native&b_method=text_json"))
    assert "regressed" in text
    assert f"/trials/{cell.trials.order_by('pk')[0].pk}/" in text


def make_models(*counts: tuple[int, int]) -> int:
    """Make a run with a model for each (passed, failed), each with drawn instances; return its primary key."""
    run = make_run(instance_kind="drawn")
    for number, (passed, failed) in enumerate(counts):
        cell = make_cell(make_config(run, make_model(f"vendor/m{number}")))
        for seed in range(passed + failed):
            outcome = "pass" if seed < passed else "fail"
            make_trial(cell, outcome, instance_kind="drawn", instance_seed=seed)
    recompute_stale_cells()
    return run.pk


def test_compare_page_compares_models_of_run_with_baseline(owner_client: Client) -> None:
    run = make_models((40, 0), (39, 1), (20, 20))
    text = read_html(owner_client.get(f"/compare/?run={run}"))
    assert "2 sides against vendor/m0" in text
    assert text.count('data-side="') == 3
    assert ">Worse</span>" in text
    assert ">Cannot tell</span>" in text
    assert "<b>1</b> worse" in text
    assert "corrected for 2 comparisons" in " ".join(text.split())
    pinned = f"?run={run}&amp;a_model=vendor%2Fm1&amp;b_model=vendor%2Fm0&amp;c_model=vendor%2Fm2"
    assert pinned in text
    assert "2 sides against vendor/m1" in read_html(owner_client.get("/compare/" + pinned.replace("&amp;", "&")))


def test_compare_page_links_instances_to_trials_and_pairs(owner_client: Client) -> None:
    run = make_models((12, 0), (12, 0), (11, 1))
    grid = read_html(owner_client.get(f"/compare/?run={run}")).split('id="instances"')[1].split("</section>")[0]
    assert grid.count('scope="row"') == 1
    assert grid.count('data-count="1"') == 3
    assert grid.count("?view=differences&amp;beside=") == 2
    everything = read_html(owner_client.get(f"/compare/?run={run}&instances=all"))
    assert everything.split('id="instances"')[1].count('data-count="1"') == 36
    pair = grid.split('class="beside"')[2].partition('href="')[2].partition('"')[0].replace("&amp;", "&")
    assert owner_client.get(pair).status_code == 200


def test_compare_page_adds_side_and_keeps_sides_in_scope_form(owner_client: Client) -> None:
    run = make_models((9, 1), (9, 1), (9, 1))
    text = read_html(owner_client.get(f"/compare/?run={run}&a_model=vendor/m0&b_model=vendor/m1"))
    assert 'name="c_model"' in text
    assert "<option>vendor/m2</option>" in text
    form = text.split('class="toolbar view-bar"')[1].split("</form>")[0]
    for name in ("run", "a_model", "b_model"):
        assert f'name="{name}"' in form
    chooser = read_html(owner_client.get(f"/compare/?run={run}&a_model=vendor/m0&b_model=vendor/m1&choose=1"))
    assert 'name="c_provider"' in chooser


def test_compare_page_offers_runs_that_hold_for_all_sides(owner_client: Client) -> None:
    runs = [make_models((9, 1), (8, 2)) for _ in range(3)]
    text = read_html(owner_client.get(f"/compare/?run={runs[0]}&run={runs[1]}&metric=delivered"))
    form = text.split('id="filter"')[1].split("</form>")[0]
    assert re.findall(r'name="run"\s+value="(\d+)"\s+checked', form) == [str(runs[1]), str(runs[0])]
    assert f'value="{runs[2]}"' in form
    assert "18</b>/20" in text
    own_runs = read_html(owner_client.get(f"/compare/?a_run={runs[0]}&b_run={runs[1]}"))
    assert 'type="checkbox" name="run"' not in own_runs


def test_compare_page_of_finished_runs_is_cached_until_counts_change(
    owner_client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    run = make_models((9, 1), (5, 5), (9, 1))
    Run.objects.update(state=Run.State.FINISHED)
    refresh_pools()
    assert "<b>9</b>/10" in read_html(owner_client.get(f"/compare/?run={run}"))
    with django_assert_max_num_queries(12):
        assert "<b>9</b>/10" in read_html(owner_client.get(f"/compare/?run={run}"))
    cell = Cell.objects.filter(run=run).earliest("pk")
    make_trial(cell, "fail", instance_kind="drawn", instance_seed=99)
    mark_stale([cell.pk])
    recompute_stale_cells()
    assert "<b>9</b>/11" in read_html(owner_client.get(f"/compare/?run={run}"))


def test_compare_export_of_three_sides_has_row_per_side(owner_client: Client) -> None:
    run = make_models((9, 1), (5, 5), (9, 1))
    query = f"run={run}&a_model=vendor/m0&b_model=vendor/m1&c_model=vendor/m2"
    rows = owner_client.get(f"/compare/export.json?{query}").json()["rows"]
    assert [row["side"] for row in rows] == ["vendor/m0", "vendor/m1", "vendor/m2"]
    assert [row["is_baseline"] for row in rows] == [True, False, False]
