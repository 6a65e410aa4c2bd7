"""What tokens cost by the providers' own price lists: a dated table, for endpoints that name no cost themselves."""

from dataclasses import dataclass
from functools import cache

from toolbench.evals.data_files import read_table

_TOKENS_PER_PRICE = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens, without discounts for cached ones or batches. `date`: when `source` said so."""

    provider: str  # a row of the providers' templates
    model: str
    input: float
    output: float
    date: str
    source: str

    @property
    def named(self) -> str:
        return f"list price of {self.date}, {self.source}"

    def compute_cost(self, input_tokens: float, output_tokens: float) -> float:
        return (self.input * input_tokens + self.output * output_tokens) / _TOKENS_PER_PRICE


@cache
def load_prices() -> tuple[Price, ...]:
    lists = read_table("prices")["lists"]
    return tuple(
        Price(one["provider"], model, asked, answered, one["date"], one["source"])
        for one in lists
        for model, (asked, answered) in one["models"].items()
    )


def find_price(provider: str, model: str) -> Price | None:
    """None where no price is known: another provider's price for the same weights is another price."""
    return next((price for price in load_prices() if (price.provider, price.model) == (provider, model)), None)
