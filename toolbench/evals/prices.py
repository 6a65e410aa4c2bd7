"""Prices of tokens, for endpoints that report no cost: from dated price lists or from stored settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from toolbench.evals.data_files import read_table

_TOKENS_PER_PRICE = 1_000_000
MAX_PRICE = 100_000  # US dollars per million tokens


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a model's tokens at one provider, without discounts for cached tokens or batches.

    Attributes:
        provider: The slug of the provider's template; "" if there is no provider.
        input: US dollars per million input tokens.
        output: US dollars per million output tokens.
        date: The date on which `source` stated the price; "" if no date is known.
        source: The origin of the price in words; "" if it is not known.
    """

    provider: str
    model: str
    input: float
    output: float
    date: str
    source: str

    @property
    def origin(self) -> str:
        """Return the source of the price as text, with its date if it has one."""
        return f"price of {self.date}, {self.source}" if self.date else self.source

    @property
    def is_zero(self) -> bool:
        """Return whether the tokens cost nothing."""
        return self.input == 0 and self.output == 0

    def to_json(self) -> dict[str, float | str]:
        """Return the fields that `read_price` reads."""
        return {"input": self.input, "output": self.output, "date": self.date, "source": self.source}

    def compute_cost(self, input_tokens: float, output_tokens: float) -> float:
        """Return the cost of the tokens in US dollars."""
        return (self.input * input_tokens + self.output * output_tokens) / _TOKENS_PER_PRICE


def read_price(stored: Mapping[str, Any], provider: str, model: str) -> Price | None:
    """Return the stored price of a model, which a user entered or an imported bundle states.

    Args:
        stored: The stored fields; the prices are US dollars per million tokens.
        provider: The slug of the provider's template; "" if there is no provider.
        model: The name of the model.

    Returns:
        The price; None if one of the two prices is missing or is not a number from 0 to MAX_PRICE.
    """
    if not all(_is_valid_figure(stored.get(name)) for name in ("input", "output")):
        return None
    texts = (str(stored.get(name) or "") for name in ("date", "source"))
    return Price(provider, model, float(stored["input"]), float(stored["output"]), *texts)


def _is_valid_figure(figure: object) -> bool:
    return isinstance(figure, int | float) and not isinstance(figure, bool) and 0 <= figure <= MAX_PRICE


@cache
def load_prices() -> tuple[Price, ...]:
    """Return every price of `data/prices.json`, in its order."""
    lists = read_table("prices")["lists"]
    return tuple(
        Price(price_list["provider"], model, input_price, output_price, price_list["date"], price_list["source"])
        for price_list in lists
        for model, (input_price, output_price) in price_list["models"].items()
    )


def find_price(provider: str, model: str) -> Price | None:
    """Return the provider's list price of a model; None if no price is known.

    Prices of the model at other providers are not used.
    """
    return _index_prices().get((provider, model))


@cache
def _index_prices() -> Mapping[tuple[str, str], Price]:
    """Return the prices by provider and model; the first price of a model counts."""
    return {(price.provider, price.model): price for price in reversed(load_prices())}
