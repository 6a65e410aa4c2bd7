"""What requests of the gateway cost, added up for the monthly budgets of providers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from toolbench.engine.bounds import parse_cost, parse_count
from toolbench.engine.types import Usage
from toolbench.evals.prices import Price
from toolbench.lab.metrics.provider_budget import find_month_start
from toolbench.lab.models import GatewaySpending, Provider, SpendingWriter


@dataclass(frozen=True, slots=True)
class Spending:
    """Sum of the known costs in US dollars, and the numbers of requests with a known and an unknown cost."""

    dollars: float = 0.0
    known: int = 0
    unknown: int = 0

    def __add__(self, other: "Spending") -> "Spending":
        return Spending(self.dollars + other.dollars, self.known + other.known, self.unknown + other.unknown)


@dataclass(frozen=True, slots=True)
class SpendingBatch:
    """Sums of one gateway process that are stored together, and once.

    Attributes:
        writer: random id of the process.
        number: number of the batch in the process, from 1; a batch is stored before the next one is built.
        by_provider: sums by provider id.
    """

    writer: UUID
    number: int
    by_provider: Mapping[int, Spending]


def compute_spending(usages: Iterable[Usage | None], price: Price | None) -> Spending:
    """Return what one request of a client cost.

    Args:
        usages: usage of each answer that the model gave, None where it reported none; empty if it gave no answer.
        price: price of the model's tokens, for answers without a reported cost; None if none is known.
    """
    costs = [_compute_cost(usage, price) for usage in usages]
    known_costs = [cost for cost in costs if cost is not None]
    if len(known_costs) < len(costs):
        return Spending(sum(known_costs), unknown=1)
    return Spending(sum(known_costs), known=1) if costs else Spending()


def _compute_cost(usage: Usage | None, price: Price | None) -> float | None:
    if usage is None:
        return None
    reported = parse_cost(usage.cost)
    if reported is not None or price is None:
        return reported
    input_tokens, output_tokens = parse_count(usage.input_tokens), parse_count(usage.output_tokens)
    if input_tokens is None and output_tokens is None:
        return None
    return price.compute_cost(input_tokens or 0, output_tokens or 0)


def add_spending(batch: SpendingBatch) -> None:
    """Add the sums of a batch to the current month. A provider that was deleted is left out.

    A batch that is stored already, because only the answer of an earlier call was lost, is not added again.
    """
    month = find_month_start().date()
    existing = Provider.objects.filter(pk__in=batch.by_provider).values_list("pk", flat=True)
    with transaction.atomic():
        if not _claim(batch):
            return
        for provider_id in sorted(existing):
            spending = batch.by_provider[provider_id]
            row, _ = GatewaySpending.objects.get_or_create(provider_id=provider_id, month=month)
            GatewaySpending.objects.filter(pk=row.pk).update(
                dollars=F("dollars") + spending.dollars,
                known=F("known") + spending.known,
                unknown=F("unknown") + spending.unknown,
            )


def _claim(batch: SpendingBatch) -> bool:
    """Note that the batch is stored in this transaction; return False if it is stored already."""
    _, is_first = SpendingWriter.objects.get_or_create(key=batch.writer, defaults={"last_batch": batch.number})
    earlier = SpendingWriter.objects.filter(key=batch.writer, last_batch__lt=batch.number)
    return is_first or earlier.update(last_batch=batch.number, stored_at=timezone.now()) > 0
