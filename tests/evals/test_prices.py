"""Tests of the list prices."""

import pytest

from toolbench.evals.prices import find_price, load_prices, read_price


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


@pytest.mark.parametrize("figure", [None, True, "2", -1, 100_001, float("nan"), 10**400])
def test_read_price_with_invalid_figure_is_none(figure: object) -> None:
    assert read_price({"input": 1, "output": figure}, "", "m") is None


def test_read_price_origin_names_source_and_any_date() -> None:
    dated, undated = ({"input": 1, "output": 2, "date": date, "source": "contract 17"} for date in ("2026-11-01", None))
    prices = [read_price(stored, "", "m") for stored in (dated, undated)]
    assert [price.origin if price else "" for price in prices] == ["price of 2026-11-01, contract 17", "contract 17"]
