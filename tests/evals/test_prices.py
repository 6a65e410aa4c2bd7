"""Tests of the list prices."""

import pytest

from toolbench.evals.prices import find_price, load_prices


def test_load_prices_each_have_a_date_and_a_source() -> None:
    assert all(price.date and price.source and 0 < price.input <= price.output for price in load_prices())
    assert len({(price.provider, price.model) for price in load_prices()}) == len(load_prices())


def test_compute_cost_is_per_million_tokens() -> None:
    price = find_price("openai", "gpt-4o-mini")
    assert price is not None
    assert price.compute_cost(1_000_000, 500_000) == pytest.approx(0.15 + 0.3)


def test_find_price_at_another_provider_is_none() -> None:
    assert find_price("openrouter", "gpt-4o-mini") is None
    assert find_price("openai", "nobody") is None
