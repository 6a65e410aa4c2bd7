"""Tests of the list prices."""

import pytest

from toolbench.evals.prices import find_price, load_prices


def test_every_price_has_its_day_and_its_source() -> None:
    assert all(price.date and price.source and 0 < price.input <= price.output for price in load_prices())
    assert len({(price.provider, price.model) for price in load_prices()}) == len(load_prices())


def test_tokens_are_priced_by_the_million() -> None:
    price = find_price("openai", "gpt-4o-mini")
    assert price is not None
    assert price.compute_cost(1_000_000, 500_000) == pytest.approx(0.15 + 0.3)


def test_another_provider_of_the_same_weights_has_no_known_price() -> None:
    assert find_price("openrouter", "gpt-4o-mini") is None
    assert find_price("openai", "nobody") is None
