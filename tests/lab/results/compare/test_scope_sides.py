"""Sides of a comparison whose URL names none."""

import pytest
from django.http import QueryDict

from tests.factories import make_cell, make_config, make_model, make_run, make_trials, recompute_stale_cells
from toolbench.lab.metrics.pools import refresh_pools
from toolbench.lab.models import Run
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.results.compare.scope_sides import MAX_SCOPE_SIDES, ScopeSides, get_scope_sides

pytestmark = pytest.mark.django_db


def split(query: str) -> ScopeSides:
    return get_scope_sides(CompareQuery.from_query(QueryDict(query)))


def make_models(*trials: int, **run: object) -> Run:
    made = make_run(**run)
    for number, count in enumerate(trials):
        make_trials(make_cell(make_config(made, make_model(f"m{number}"))), **{"pass": count})
    recompute_stale_cells()
    return made


@pytest.mark.parametrize("is_pooled", [False, True])
def test_models_of_a_scope_are_its_sides_most_tried_first(is_pooled: bool) -> None:
    run = make_models(2, 5, 3)
    if is_pooled:
        Run.objects.update(state=Run.State.FINISHED)
        assert refresh_pools() == 1
    for query in ("", f"run={run.pk}"):
        sides = split(query)
        assert [side["model"] for side in sides.query.sides] == ["m1", "m2", "m0"]
        assert (sides.axis, sides.next_letter) == ("model", "d")


def test_model_that_shares_no_scenario_is_no_side() -> None:
    run = make_models(2, 3)
    make_trials(make_cell(make_config(run, make_model("m2")), scenario="alone"), **{"pass": 9})
    recompute_stale_cells()
    sides = split("")
    assert [side["model"] for side in sides.query.sides] == ["m1", "m0"]
    assert (sides.other_values, sides.total) == (("m2",), 3)


def test_sides_share_a_scenario_with_the_baseline() -> None:
    run = make_run()
    tried = (("a", "first", 9), ("b", "second", 8), ("c", "second", 7), ("d", "first", 2))
    for name, scenario, trials in tried:
        make_trials(make_cell(make_config(run, make_model(name)), scenario=scenario), **{"pass": trials})
    recompute_stale_cells()
    sides = split("")
    assert [side["model"] for side in sides.query.sides] == ["a", "d"]
    assert (sides.other_values, sides.total) == (("b", "c"), 4)


def test_models_without_a_shared_scenario_are_sides_most_tried_first() -> None:
    run = make_run()
    for name, scenario, trials in (("m0", "first", 2), ("m1", "second", 4)):
        make_trials(make_cell(make_config(run, make_model(name)), scenario=scenario), **{"pass": trials})
    recompute_stale_cells()
    assert [side["model"] for side in split("").query.sides] == ["m1", "m0"]


def test_more_models_than_sides_can_be_added() -> None:
    make_models(*range(MAX_SCOPE_SIDES + 2, 0, -1))
    sides = split("")
    assert len(sides.query.sides) == MAX_SCOPE_SIDES
    assert sides.other_values == ("m7", "m8")
    assert sides.total == MAX_SCOPE_SIDES + 2


def test_axis_that_varies_is_taken_and_can_be_chosen() -> None:
    run = make_run()
    for method in ("native", "text_json"):
        for profile in ("cold", "warm"):
            make_trials(make_cell(make_config(run, method=method, profile=profile)), **{"pass": 1})
    recompute_stale_cells()
    assert split("").axis == "profile"
    assert [side["method"] for side in split("by=method").query.sides] == ["native", "text_json"]
    assert split("profile=cold").axis == "method"
    assert split("by=luck").query.ignored == ("by",)


def test_scope_narrows_the_sides() -> None:
    make_models(1, 2, 3)
    assert [side["model"] for side in split("model=m0&model=m2").query.sides] == ["m2", "m0"]
    assert not split("model=m0").query.is_complete
    assert not split("demo=1").query.is_complete


def test_named_sides_stay_and_others_are_offered() -> None:
    make_models(1, 2, 3)
    sides = split("a_model=m0&b_model=m1")
    assert [dict(side) for side in sides.query.sides] == [{"model": "m0"}, {"model": "m1"}]
    assert (sides.axis, sides.other_values, sides.next_letter) == ("model", ("m2",), "c")
