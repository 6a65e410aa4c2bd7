"""Estimates of requests, tokens, cost and time of planned trials."""

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


def plan_trials(model: Model, trials: int = 100, **fields: Any) -> PlannedTrials:
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


def make_earlier_trials(model: Model, count: int = 10, **fields: Any) -> list[Trial]:
    cell = make_cell(make_config(make_run(), model))
    trials = [make_trial(cell, duration_ms=2000, **fields) for _ in range(count)]
    recompute_stale_cells()
    return trials


def test_estimate_range_narrows_with_trials_and_widens_with_variance() -> None:
    few, many = estimate_range([CellSample(5, 100, 400)], 50, 50), estimate_range([CellSample(500, 100, 400)], 50, 50)
    assert few[0] < many[0] < 5000 < many[1] < few[1]
    apart = estimate_range([CellSample(250, 60, 400), CellSample(250, 140, 400)], 50, 50)
    assert apart[0] < many[0]
    assert many[1] < apart[1]
    assert estimate_range([CellSample(10, 3, 0)], 10, 60) == (30, 180)


def test_estimate_trials_uses_costs_of_similar_trials(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    model = make_model()
    make_earlier_trials(model, cost=0.01)
    with django_assert_num_queries(2):
        found = estimate_trials([plan_trials(model)], RemainingLimits())
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


def test_estimate_trials_has_at_least_one_request_per_trial() -> None:
    model = make_model()
    cell = make_cell(make_config(make_run(), model))
    for requests in (1, 20):
        make_trial(cell, requests=requests)
    recompute_stale_cells()
    found = estimate_trials([plan_trials(model)], RemainingLimits())
    assert found is not None
    assert found.requests is not None
    assert found.requests.low == 100
    assert found.requests.high > 1000


def test_estimate_trials_after_unsent_trials_has_one_request_each() -> None:
    model = make_model()
    cell = make_cell(make_config(make_run(), model))
    for requests in (0, 0, 1):
        make_trial(cell, requests=requests)
    recompute_stale_cells()
    found = estimate_trials([plan_trials(model, min_trials=10)], RemainingLimits())
    assert found is not None
    assert found.requests is not None
    assert (found.requests.low, found.requests.high) == (10, 100)


def test_estimate_trials_without_reported_cost_uses_price_list() -> None:
    model = make_model("gpt-4o-mini", provider=make_provider("OpenAI", template="openai"))
    make_earlier_trials(model)
    found = estimate_trials([plan_trials(model)], RemainingLimits())
    assert found is not None
    assert found.cost is not None
    assert found.cost.high == pytest.approx((0.15 * 40_000 + 0.6 * 6_000) / 1e6)
    assert any("price of 2026-03" in source for source in found.sources)


def test_estimate_trials_unknown_price_is_named_and_has_no_cost() -> None:
    model = make_model("nobody-knows")
    make_earlier_trials(model)
    found = estimate_trials([plan_trials(model)], RemainingLimits())
    assert found is not None
    assert (found.cost, found.unpriced) == (None, ("nobody-knows",))


def test_estimate_trials_does_not_use_cost_of_other_models() -> None:
    make_earlier_trials(make_model("dear"), cost=5.0)
    found = estimate_trials([plan_trials(make_model("cheap"))], RemainingLimits())
    assert found is not None
    assert found.sources == ("1 cell from other models, the same scenario and method",)
    assert (found.cost, found.unpriced) == (None, ("cheap",))


def test_estimate_trials_of_local_model_costs_zero() -> None:
    model = make_model("tiny", provider=make_provider("This machine", kind=Provider.Kind.LOCAL))
    make_earlier_trials(model)
    found = estimate_trials([plan_trials(model)], RemainingLimits())
    assert found is not None
    assert found.cost is not None
    assert (found.cost.high, found.unpriced) == (0, ())


def test_estimate_trials_at_private_address_costs_only_with_price() -> None:
    server = make_provider("Own server", base_url="http://10.0.0.7:8000")
    free, priced = make_model("free", provider=server), make_model("priced", provider=server, price=PRICE)
    for model in (free, priced):
        make_earlier_trials(model)
    found = [estimate_trials([plan_trials(model)], RemainingLimits()) for model in (free, priced)]
    assert [(estimate.cost and estimate.cost.high, estimate.unpriced) for estimate in found if estimate] == [
        (0, ()), (pytest.approx(100 * 460 / 1e6), ()),
    ]  # fmt: skip


def test_estimate_trials_of_local_model_with_price_has_cost() -> None:
    model = make_model("tiny", provider=make_provider("This machine", kind=Provider.Kind.LOCAL), price=PRICE)
    make_earlier_trials(model)
    found = estimate_trials([plan_trials(model)], RemainingLimits())
    assert found is not None
    assert found.cost is not None
    assert found.cost.high == pytest.approx(100 * 460 / 1e6)


def test_estimate_trials_is_capped_by_request_limit() -> None:
    model = make_model()
    make_earlier_trials(model, cost=0.01)
    found = estimate_trials([plan_trials(model)], RemainingLimits(requests=50))
    assert found is not None
    assert found.capped
    assert found.requests is not None
    assert found.cost is not None
    assert found.requests.high == 50
    assert found.cost.high == pytest.approx(0.25)


def test_estimate_trials_until_decided_spans_least_to_most_trials() -> None:
    model = make_model()
    make_earlier_trials(model)
    found = estimate_trials([plan_trials(model, min_trials=10, max_trials=60)], RemainingLimits())
    assert found is not None
    assert found.requests is not None
    assert (found.requests.low, found.requests.high) == (20, 120)


def test_estimate_trials_of_other_strategy_uses_requests_of_other_models() -> None:
    """The trials of the model ended after one request; with another strategy they may need as many as other models."""
    model = make_model("tagged")
    make_earlier_trials(model, requests=1, cost=0.5)
    make_earlier_trials(make_model("other"), requests=3, cost=9.0)
    same, other = (
        estimate_trials([plan_trials(model, strategy=name)], RemainingLimits()) for name in ("production", "a_preset")
    )
    assert same is not None
    assert other is not None
    assert other.requests is not None
    assert other.requests.high > 300
    assert other.cost == same.cost  # never of other models


def test_estimate_trials_without_similar_trials_is_none() -> None:
    assert estimate_trials([plan_trials(make_model())], RemainingLimits()) is None
    assert estimate_trials([], RemainingLimits()) is None


def test_estimate_trials_of_unseen_cells_uses_planned_requests() -> None:
    model = make_model()
    make_earlier_trials(model)
    new = make_model("vendor/new", provider=make_provider("Elsewhere", kind="local"))
    found = estimate_trials(
        [plan_trials(model), plan_trials(new, 10, scenario="other", requests=(2, 24))], RemainingLimits()
    )
    assert found is not None
    assert found.requests is not None
    assert (found.requests.low, found.requests.high) == (200 + 20, 200 + 240)
    assert (found.cells, found.unseen) == (2, 1)
    assert found.tokens is not None
    assert found.tokens.high == 46_000
    assert estimate_trials([plan_trials(new, scenario="other", requests=(2, 24))], RemainingLimits()) is None
