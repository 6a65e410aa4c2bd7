"""Sides of a comparison whose URL names none."""

import pytest
from django.http import QueryDict

from tests.factories import make_cell, make_config, make_model, make_run, make_trials, recompute_stale_cells
from toolbench.lab.metrics.pools import refresh_pools
from toolbench.lab.models import Run
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.results.compare.scope_sides import MAX_SCOPE_SIDES, ScopeSides, get_scope_sides

pytestmark = pytest.mark.django_db


def get_sides(query: str) -> ScopeSides:
    return get_scope_sides(CompareQuery.from_query(QueryDict(query)))


def make_models(*trials: int, **fields: object) -> Run:
    run = make_run(**fields)
    for number, count in enumerate(trials):
        make_trials(make_cell(make_config(run, make_model(f"m{number}"))), **{"pass": count})
    recompute_stale_cells()
    return run


@pytest.mark.parametrize("is_pooled", [False, True])
def test_scope_sides_are_models_with_most_trials_first(is_pooled: bool) -> None:
    run = make_models(2, 5, 3)
    if is_pooled:
        Run.objects.update(state=Run.State.FINISHED)
        assert refresh_pools() == 1
    for query in ("", f"run={run.pk}"):
        sides = get_sides(query)
        assert [side["model"] for side in sides.query.sides] == ["m1", "m2", "m0"]
        assert (sides.axis, sides.next_letter) == ("model", "d")


def test_scope_sides_exclude_model_without_a_shared_scenario() -> None:
    run = make_models(2, 3)
    make_trials(make_cell(make_config(run, make_model("m2")), scenario="alone"), **{"pass": 9})
    recompute_stale_cells()
    sides = get_sides("")
    assert [side["model"] for side in sides.query.sides] == ["m1", "m0"]
    assert (sides.other_values, sides.total) == (("m2",), 3)


def test_scope_sides_share_a_scenario_with_the_baseline() -> None:
    run = make_run()
    tried = (("a", "first", 9), ("b", "second", 8), ("c", "second", 7), ("d", "first", 2))
    for name, scenario, trials in tried:
        make_trials(make_cell(make_config(run, make_model(name)), scenario=scenario), **{"pass": trials})
    recompute_stale_cells()
    sides = get_sides("")
    assert [side["model"] for side in sides.query.sides] == ["a", "d"]
    assert (sides.other_values, sides.total) == (("b", "c"), 4)


@pytest.mark.parametrize("is_pooled", [False, True])
def test_scope_sides_have_the_values_that_hold_for_all_sides(is_pooled: bool) -> None:
    run = make_models(9, 8)
    for name, fields in (("m2", {"stream": True}), ("m3", {"stream": True, "examples": "one"})):
        make_trials(make_cell(make_config(run, make_model(name), **fields)), **{"pass": 2})
    recompute_stale_cells()
    if is_pooled:
        refresh_pools()
    for query, models in (("stream=streamed", ["m2", "m3"]), ("stream=whole", ["m0", "m1"])):
        assert [side["model"] for side in get_sides(query).query.sides] == models
    assert get_sides("stream=streamed&examples=none").axes == ()


def test_scope_sides_without_a_shared_scenario_are_all_models() -> None:
    run = make_run()
    for name, scenario, trials in (("m0", "first", 2), ("m1", "second", 4)):
        make_trials(make_cell(make_config(run, make_model(name)), scenario=scenario), **{"pass": trials})
    recompute_stale_cells()
    assert [side["model"] for side in get_sides("").query.sides] == ["m1", "m0"]


def test_scope_sides_are_limited_and_offer_other_models() -> None:
    make_models(*range(MAX_SCOPE_SIDES + 2, 0, -1))
    sides = get_sides("")
    assert len(sides.query.sides) == MAX_SCOPE_SIDES
    assert sides.other_values == ("m7", "m8")
    assert sides.total == MAX_SCOPE_SIDES + 2


def test_scope_sides_axis_is_the_varying_or_chosen_setting() -> None:
    run = make_run()
    for method in ("native", "text_json"):
        for profile in ("cold", "warm"):
            make_trials(make_cell(make_config(run, method=method, profile=profile)), **{"pass": 1})
    recompute_stale_cells()
    assert get_sides("").axis == "profile"
    assert [side["method"] for side in get_sides("by=method").query.sides] == ["native", "text_json"]
    assert get_sides("profile=cold").axis == "method"
    assert get_sides("by=luck").query.ignored == ("by",)


def test_scope_sides_are_narrowed_by_the_filters() -> None:
    make_models(1, 2, 3)
    assert [side["model"] for side in get_sides("model=m0&model=m2").query.sides] == ["m2", "m0"]
    assert not get_sides("model=m0").query.is_complete
    assert not get_sides("demo=1").query.is_complete


def test_scope_sides_keep_named_sides_and_offer_others() -> None:
    make_models(1, 2, 3)
    sides = get_sides("a_model=m0&b_model=m1")
    assert [dict(side) for side in sides.query.sides] == [{"model": "m0"}, {"model": "m1"}]
    assert (sides.axis, sides.other_values, sides.next_letter) == ("model", ("m2",), "c")
