"""Costs of gateway requests, added up for the monthly budgets of providers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from toolbench.engine.bounds import parse_cost, parse_count
from toolbench.engine.types import Usage
from toolbench.evals.prices import Price
from toolbench.lab.metrics.provider_budget import compute_month_start
from toolbench.lab.sql import load_statement
from toolbench.lab.worker.database_thread import open_cursor

_ADD_SPENDING = load_statement("serving/add_spending")


@dataclass(frozen=True, slots=True)
class Spending:
    """Cost of requests.

    Attributes:
        dollars: sum of the known costs in US dollars.
        known: number of requests whose cost is known.
        unknown: number of answered requests whose cost is unknown, or known only in part.
    """

    dollars: float = 0.0
    known: int = 0
    unknown: int = 0

    def __add__(self, other: "Spending") -> "Spending":
        return Spending(self.dollars + other.dollars, self.known + other.known, self.unknown + other.unknown)


@dataclass(frozen=True, slots=True)
class SpendingBatch:
    """Costs of one gateway process by provider. A batch is stored as a whole and never twice.

    Attributes:
        writer: random id of the process.
        number: number of the batch in the process, from 1; a batch is stored before the next one is built.
        by_provider: costs by provider id.
    """

    writer: UUID
    number: int
    by_provider: Mapping[int, Spending]


def compute_spending(usages: Iterable[Usage | None], price: Price | None) -> Spending:
    """Return the cost of the answers of one model to one request of a client.

    Args:
        usages: usage of each answer of the model, None for an answer without usage; empty without an answer.
        price: price of the model's tokens, for answers without a reported cost; None if none is known.

    Returns:
        The sum of the known costs of the answers. The request counts as unknown if the cost of any answer is unknown,
        else as known. A request without an answer counts as neither.
    """
    costs = [_compute_cost(usage, price) for usage in usages]
    known_costs = [cost for cost in costs if cost is not None]
    if len(known_costs) < len(costs):
        return Spending(sum(known_costs), unknown=1)
    return Spending(sum(known_costs), known=1) if costs else Spending()


def _compute_cost(usage: Usage | None, price: Price | None) -> float | None:
    """Return the cost in US dollars that an answer reports, else its cost by the price; None if neither is known."""
    reported = None if usage is None else parse_cost(usage.cost)
    if reported is not None or price is None:
        return reported
    if price.is_zero:
        return 0.0
    if usage is None:
        return None
    input_tokens, output_tokens = parse_count(usage.input_tokens), parse_count(usage.output_tokens)
    if input_tokens is None and output_tokens is None:
        return None
    return price.compute_cost(input_tokens or 0, output_tokens or 0)


def add_spending(batch: SpendingBatch) -> None:
    """Add the costs of a batch to the current month. Costs of deleted providers are ignored.

    If the database's answer was lost, call it again: a batch that is stored already is not added a second time.

    Raises:
        django.db.Error: the database is unavailable or refuses the batch.
    """
    sums = batch.by_provider.values()
    parameters = [
        batch.writer,
        batch.number,
        compute_month_start().date(),
        list(batch.by_provider),
        [spending.dollars for spending in sums],
        [spending.known for spending in sums],
        [spending.unknown for spending in sums],
    ]
    cursor = open_cursor()
    with connection.wrap_database_errors:
        cursor.execute(_ADD_SPENDING, parameters)
