"""Cost of the gateway's requests and its sum in a month."""

from collections.abc import Mapping
from uuid import UUID, uuid4

import pytest

from tests.factories import make_provider
from toolbench.engine.types import Usage
from toolbench.evals.prices import Price
from toolbench.lab.models import GatewaySpending
from toolbench.lab.serving.spending import Spending, SpendingBatch, add_spending, compute_spending

WRITER = uuid4()
PRICE = Price("", "m", 1_000_000.0, 2_000_000.0, "", "")
FREE = Price("", "m", 0.0, 0.0, "", "")


@pytest.mark.parametrize(
    ("usages", "price", "expected"),
    [
        ([], PRICE, Spending()),
        ([Usage(cost=0.5), Usage(cost=0.25)], None, Spending(0.75, 1)),
        ([Usage(input_tokens=2, output_tokens=3)], PRICE, Spending(8.0, 1)),
        ([Usage(input_tokens=2, cost=0.5)], PRICE, Spending(0.5, 1)),
        ([Usage(input_tokens=2)], None, Spending(unknown=1)),
        ([Usage()], PRICE, Spending(unknown=1)),
        ([Usage(cost=0.5), None], PRICE, Spending(0.5, unknown=1)),
        ([Usage(), None], FREE, Spending(known=1)),
        ([Usage(cost=float("nan"))], None, Spending(unknown=1)),
    ],
)
def test_compute_spending_uses_reported_cost_then_price(
    usages: list[Usage | None], price: Price | None, expected: Spending
) -> None:
    assert compute_spending(usages, price) == expected


def build_batch(number: int, by_provider: Mapping[int, Spending], writer: UUID = WRITER) -> SpendingBatch:
    return SpendingBatch(writer, number, by_provider)


@pytest.mark.django_db
def test_add_spending_sums_by_provider_and_month() -> None:
    provider = make_provider()
    for number in (1, 2):
        add_spending(build_batch(number, {provider.pk: Spending(0.5, 1, 2), 999_999: Spending(1.0, 1)}))
    row = GatewaySpending.objects.get()
    assert (row.dollars, row.known, row.unknown, row.month.day) == (1.0, 2, 4, 1)


@pytest.mark.django_db
def test_add_spending_counts_batch_once_per_gateway_process() -> None:
    provider = make_provider()
    for number in (1, 1, 2, 2, 1):
        add_spending(build_batch(number, {provider.pk: Spending(0.5, 1)}))
    add_spending(build_batch(1, {provider.pk: Spending(0.25, 1)}, uuid4()))
    row = GatewaySpending.objects.get()
    assert (row.dollars, row.known) == (1.25, 3)
