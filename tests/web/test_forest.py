"""Forest plot: its axis and the links of its rows."""

import pytest
from django.http import QueryDict

from tests.factories import make_cell, make_config, make_model, make_run, make_trials, recompute_stale_cells
from toolbench.lab.results.compare.baseline import compare_with_baseline
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.web.forest import Forest, build_forest, shorten_names

pytestmark = pytest.mark.django_db


def build_plot(*counts: tuple[int, int], query: str = "") -> Forest:
    run = make_run()
    for number, (passed, failed) in enumerate(counts):
        config = make_config(run, make_model(f"vendor/m{number}"))
        make_trials(make_cell(config), **{"pass": passed, "fail": failed})
    recompute_stale_cells()
    sides = "&".join(f"{'abcdefgh'[number]}_model=vendor/m{number}" for number in range(len(counts)))
    compare_query = CompareQuery.from_query(QueryDict(f"run={run.pk}&{sides}&{query}"))
    return build_forest(compare_query, compare_with_baseline(compare_query).rows)


def test_build_forest_axis_covers_intervals_and_margin() -> None:
    forest = build_plot((39, 1), (40, 0), (21, 19))
    assert forest.ticks[0].x == 0
    assert forest.ticks[-1].x == 100
    for row in forest.others:
        assert row.low is not None
        assert row.value is not None
        assert row.high is not None
        assert 0 <= row.low < row.value < row.high <= 100
    assert forest.margin_low < forest.zero < forest.margin_high
    zero = next(tick for tick in forest.ticks if tick.label == "0")
    assert zero.x == forest.zero


def test_build_forest_margin_follows_points() -> None:
    narrow, wide = build_plot((20, 0), (20, 0), query="points=3"), build_plot((20, 0), (20, 0), query="points=20")
    assert wide.margin_high - wide.margin_low > narrow.margin_high - narrow.margin_low


def test_build_forest_baseline_and_two_sides_have_no_remove_link() -> None:
    three, two = build_plot((9, 1), (9, 1), (9, 1)), build_plot((9, 1), (9, 1))
    assert (three.rows[0].pin_query, three.rows[0].remove_query, three.rows[0].pair_query) == ("", "", "")
    assert all(row.pin_query and row.remove_query and row.pair_query for row in three.others)
    assert [(row.remove_query, row.pair_query) for row in two.others] == [("", "")]
    assert "a_model=vendor%2Fm1" in two.others[0].pin_query


def test_shorten_names_keeps_vendor_of_ambiguous_names() -> None:
    assert shorten_names(["qwen/a", "glm/b", "c"]) == ["a", "b", "c"]
    assert shorten_names(["qwen/a", "glm/a"]) == ["qwen/a", "glm/a"]
