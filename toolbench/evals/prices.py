"""Prices of tokens from the providers' price lists: a dated table, for endpoints that report no cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from toolbench.evals.data_files import read_table

_TOKENS_PER_PRICE = 1_000_000
MAX_PRICE = 100_000  # dollars for a million tokens


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens, without discounts for cached tokens or batches.

    Attributes:
        date: The date at which `source` stated the price.
    """

    provider: str  # a row of the providers' templates
    model: str
    input: float
    output: float
    date: str
    source: str

    @property
    def named(self) -> str:
        """Return the origin of the price as text: its date and source."""
        return f"list price of {self.date}, {self.source}"

    def compute_cost(self, input_tokens: float, output_tokens: float) -> float:
        """Return the cost of so many tokens in US dollars."""
        return (self.input * input_tokens + self.output * output_tokens) / _TOKENS_PER_PRICE


def read_price(stored: Mapping[str, Any], provider: str, model: str) -> Price | None:
    """Return the price that a person entered for a model; None where `stored` holds none that can be used."""
    figures = [stored.get(name) for name in ("input", "output")]
    if not all(isinstance(figure, int | float) and 0 <= figure <= MAX_PRICE for figure in figures):
        return None
    texts = (str(stored.get(name, "")) for name in ("date", "source"))
    return Price(provider, model, float(stored["input"]), float(stored["output"]), *texts)


@cache
def load_prices() -> tuple[Price, ...]:
    """Return every price of `data/prices.json`."""
    lists = read_table("prices")["lists"]
    return tuple(
        Price(price_list["provider"], model, input_price, answered, price_list["date"], price_list["source"])
        for price_list in lists
        for model, (input_price, answered) in price_list["models"].items()
    )


def find_price(provider: str, model: str) -> Price | None:
    """Return the provider's price of a model; None if no price is known.

    Another provider's price for the same weights is never used: it is a different price.
    """
    return next((price for price in load_prices() if (price.provider, price.model) == (provider, model)), None)
