"""What trials are likely to take."""

from dataclasses import replace
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.factories import (
    make_cell,
    make_config,
    make_model,
    make_provider,
    make_run,
    make_trial,
    recompute_stale_cells,
)
from toolbench.lab.models import Model, Provider, Trial
from toolbench.lab.paid_requests import find_model_price, may_cost_money
from toolbench.lab.planning.earlier_cells import PlannedTrials
from toolbench.lab.planning.forecast import CellSample, RemainingLimits, estimate_range, estimate_trials

pytestmark = pytest.mark.django_db

PRICE = {"input": 1.0, "output": 1.0}


def asked(model: Model, trials: int = 100, **fields: Any) -> PlannedTrials:
    provider = model.provider
    whole = PlannedTrials(
        model.pk,
        model.name,
        provider.pk,
        provider.kind,
        4,
        "native",
        "production",
        "happy_path",
        trials,
        trials,
        price=find_model_price(provider, model.name, model.price),
        may_cost=may_cost_money(provider, model.name, model.price),
    )
    return replace(whole, **fields)


def history(model: Model, count: int = 10, **fields: Any) -> list[Trial]:
    cell = make_cell(make_config(make_run(), model))
    trials = [make_trial(cell, duration_ms=2000, **fields) for _ in range(count)]
    recompute_stale_cells()
    return trials


def test_forecast_range_narrows_with_trials_and_widens_with_variance() -> None:
    few, many = estimate_range([CellSample(5, 100, 400)], 50, 50), estimate_range([CellSample(500, 100, 400)], 50, 50)
    assert few[0] < many[0] < 5000 < many[1] < few[1]
    apart = estimate_range([CellSample(250, 60, 400), CellSample(250, 140, 400)], 50, 50)
    assert apart[0] < many[0]
    assert many[1] < apart[1]
    assert estimate_range([CellSample(10, 3, 0)], 10, 60) == (30, 180)


def test_requests_tokens_money_and_time_come_from_what_such_trials_took(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    model = make_model()
    history(model, cost=0.01)
    with django_assert_num_queries(3):
        found = estimate_trials([asked(model)], RemainingLimits())
    assert found is not None
    assert found.requests is not None
    assert (found.requests.low, found.requests.high) == (200, 200)
    assert found.tokens is not None
    assert (found.tokens.low, found.tokens.high) == (46_000, 46_000)
    assert found.cost is not None
    assert (found.cost.low, found.cost.high) == pytest.approx((1.0, 1.0))
    assert found.seconds is not None
    assert (found.seconds.low, found.seconds.high) == (50, 50)
    assert found.sources == ("1 cell from the same model, scenario, method and strategy",)


def test_forecast_has_at_least_one_request_for_each_trial() -> None:
    model = make_model()
    cell = make_cell(make_config(make_run(), model))
    for requests in (1, 20):
        make_trial(cell, requests=requests)
    recompute_stale_cells()
    found = estimate_trials([asked(model)], RemainingLimits())
    assert found is not None
    assert found.requests is not None
    assert found.requests.low == 100
    assert found.requests.high > 1000


def test_forecast_of_unsent_trials_has_a_request_for_each_further_one() -> None:
    model = make_model()
    cell = make_cell(make_config(make_run(), model))
    for requests in (0, 0, 1):
        make_trial(cell, requests=requests)
    recompute_stale_cells()
    found = estimate_trials([asked(model, min_trials=10)], RemainingLimits())
    assert found is not None
    assert found.requests is not None
    assert (found.requests.low, found.requests.high) == (10, 100)


def test_a_price_list_stands_in_where_the_provider_names_no_cost() -> None:
    model = make_model("gpt-4o-mini", provider=make_provider("OpenAI", template="openai"))
    history(model)
    found = estimate_trials([asked(model)], RemainingLimits())
    assert found is not None
    assert found.cost is not None
    assert found.cost.high == pytest.approx((0.15 * 40_000 + 0.6 * 6_000) / 1e6)
    assert any("list price of 2026-03" in source for source in found.sources)


def test_an_unknown_price_is_named_and_never_nothing() -> None:
    model = make_model("nobody-knows")
    history(model)
    found = estimate_trials([asked(model)], RemainingLimits())
    assert found is not None
    assert (found.cost, found.unpriced) == (None, ("nobody-knows",))


def test_what_another_model_cost_says_nothing_of_this_one() -> None:
    history(make_model("dear"), cost=5.0)
    found = estimate_trials([asked(make_model("cheap"))], RemainingLimits())
    assert found is not None
    assert found.sources == ("1 cell from other models, the same scenario and method",)
    assert (found.cost, found.unpriced) == (None, ("cheap",))


def test_a_local_model_costs_nothing_and_that_is_known() -> None:
    model = make_model("tiny", provider=make_provider("This machine", kind=Provider.Kind.LOCAL))
    history(model)
    found = estimate_trials([asked(model)], RemainingLimits())
    assert found is not None
    assert found.cost is not None
    assert (found.cost.high, found.unpriced) == (0, ())


def test_estimate_of_a_private_address_costs_only_with_a_price() -> None:
    server = make_provider("Own server", base_url="http://10.0.0.7:8000")
    free, priced = make_model("free", provider=server), make_model("priced", provider=server, price=PRICE)
    for model in (free, priced):
        history(model)
    found = [estimate_trials([asked(model)], RemainingLimits()) for model in (free, priced)]
    assert [(each.cost and each.cost.high, each.unpriced) for each in found if each] == [
        (0, ()), (pytest.approx(100 * 460 / 1e6), ()),
    ]  # fmt: skip


def test_estimate_of_a_local_model_with_a_price_has_its_cost() -> None:
    model = make_model("tiny", provider=make_provider("This machine", kind=Provider.Kind.LOCAL), price=PRICE)
    history(model)
    found = estimate_trials([asked(model)], RemainingLimits())
    assert found is not None
    assert found.cost is not None
    assert found.cost.high == pytest.approx(100 * 460 / 1e6)


def test_a_cap_cuts_all_of_it_and_is_said() -> None:
    model = make_model()
    history(model, cost=0.01)
    found = estimate_trials([asked(model)], RemainingLimits(requests=50))
    assert found is not None
    assert found.capped
    assert found.requests is not None
    assert found.cost is not None
    assert found.requests.high == 50
    assert found.cost.high == pytest.approx(0.25)


def test_forecast_until_decided_spans_fewest_to_most_trials() -> None:
    model = make_model()
    history(model)
    found = estimate_trials([asked(model, min_trials=10, max_trials=60)], RemainingLimits())
    assert found is not None
    assert found.requests is not None
    assert (found.requests.low, found.requests.high) == (20, 120)


def test_forecast_of_other_strategy_uses_ends_of_other_models() -> None:
    """Its own trials ended after one request; under a preset that helps they may take what others take."""
    model = make_model("tagged")
    history(model, requests=1, cost=0.5)
    history(make_model("other"), requests=3, cost=9.0)
    same, other = (
        estimate_trials([asked(model, strategy=name)], RemainingLimits()) for name in ("production", "a_preset")
    )
    assert same is not None
    assert other is not None
    assert other.requests is not None
    assert other.requests.high > 300
    assert other.cost == same.cost  # never of other models


def test_nothing_is_foretold_of_what_was_never_tried() -> None:
    assert estimate_trials([asked(make_model())], RemainingLimits()) is None
    assert estimate_trials([], RemainingLimits()) is None


def test_forecast_of_unknown_cells_uses_least_and_most_requests() -> None:
    model = make_model()
    history(model)
    new = make_model("vendor/new", provider=make_provider("Elsewhere", kind="local"))
    found = estimate_trials([asked(model), asked(new, 10, scenario="other", requests=(2, 24))], RemainingLimits())
    assert found is not None
    assert found.requests is not None
    assert (found.requests.low, found.requests.high) == (200 + 20, 200 + 240)
    assert (found.cells, found.unseen) == (2, 1)
    assert found.tokens is not None
    assert found.tokens.high == 46_000
    assert estimate_trials([asked(new, scenario="other", requests=(2, 24))], RemainingLimits()) is None
