"""Monthly budgets of providers, and what their trials and the gateway's requests cost in a month.

A month is a calendar month in UTC. The costs of probes are not included, nor are unknown costs.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from toolbench.lab.metrics.spending import COST_SQL, LOST_SPENDING_SQL, find_prices, to_price_columns
from toolbench.lab.models import GatewaySpending, Provider, RunConfig
from toolbench.lab.sql import load_statement

MIN_BUDGET = 0.01  # dollars
MAX_BUDGET = 1_000_000.0


class BudgetReachedError(Exception):
    """Raised when a provider has spent its budget for this month; the message says what to do."""


@dataclass(frozen=True, slots=True)
class ProviderBudget:
    """The budget of a provider and what its trials and the gateway's requests cost in this month.

    Attributes:
        dollars: the budget.
        spent: dollars: the sum of the known costs of trials that ended in the month, and of the gateway's requests.
        known: number of trials that ended in the month and whose cost is known.
        unknown: number of trials that ended in the month and whose cost is unknown.
        running: number of trials in flight.
        concurrency: the concurrency limit; with an adaptive limit, its maximum.
        month: the first moment of the month.
        gateway_spent: dollars: the part of `spent` that the gateway's requests cost.
        gateway_known: number of the gateway's requests whose cost is known.
        gateway_unknown: number of the gateway's answered requests whose cost is unknown.
    """

    provider: str
    dollars: float
    spent: float
    known: int
    unknown: int
    running: int
    concurrency: int
    month: datetime
    gateway_spent: float = 0.0
    gateway_known: int = 0
    gateway_unknown: int = 0

    @property
    def is_reached(self) -> bool:
        """Whether no new trial may start."""
        return self.spent >= self.dollars

    @property
    def next_month(self) -> datetime:
        """The first moment of the next month."""
        return (self.month + timedelta(days=31)).replace(day=1)

    @property
    def sentence(self) -> str:
        """The message for a budget that is reached, with what to do."""
        return (
            f"{self.provider} has spent {render_dollars(self.spent)} of its budget of {render_dollars(self.dollars)} "
            f"for {self.month:%B %Y} (UTC), so no new trial starts. Raise the budget on the provider's page, "
            f"or wait until 1 {self.next_month:%B}."
        )

    def count_affordable(self) -> int | None:
        """Return how many more trials may start now.

        Each running trial is assumed to cost the mean of the month. If no cost is known yet, trials may start up to the
        concurrency limit. If no trial is running and the budget is not reached, the result is at least 1.

        Returns:
            The number; None for any number, if the trials of the month cost nothing.
        """
        if self.is_reached:
            return 0
        if not self.known:
            return max(0, self.concurrency - self.running)
        if not (trials_spent := self.spent - self.gateway_spent):
            return None
        mean = trials_spent / self.known
        return max(0, math.ceil((self.dollars - self.spent) / mean) - self.running)


def compute_month_start() -> datetime:
    """Return the first moment of the current calendar month in UTC."""
    return timezone.now().astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def get_provider_budget(provider: Provider) -> ProviderBudget | None:
    """Return the budget of a provider, with three queries; None if it has none."""
    if provider.budget_per_month is None:
        return None
    month = compute_month_start()
    has_run_this_month = Q(run__finished_at=None) | Q(run__finished_at__gte=month)
    prices = find_prices(RunConfig.objects.filter(has_run_this_month, provider_id=provider.pk))
    configs, inputs, outputs = to_price_columns(prices)
    parameters: dict[str, Any] = {
        "provider": provider.pk,
        "since": month,
        "configs": configs,
        "inputs": inputs,
        "outputs": outputs,
    }
    with connection.cursor() as cursor:
        cursor.execute(
            load_statement("metrics/month_spending", lost_spending=LOST_SPENDING_SQL, cost=COST_SQL), parameters
        )
        known, unknown, spent, running = cursor.fetchone()
    gateway = get_gateway_spending(provider, month)
    return ProviderBudget(
        provider=provider.name,
        dollars=provider.budget_per_month,
        spent=spent + gateway.dollars,
        known=known,
        unknown=unknown,
        running=running,
        concurrency=provider.concurrency,
        month=month,
        gateway_spent=gateway.dollars,
        gateway_known=gateway.known,
        gateway_unknown=gateway.unknown,
    )


def get_gateway_spending(provider: Provider, month: datetime) -> GatewaySpending:
    """Return what the gateway's requests cost in a month, with one query.

    Args:
        provider: the provider.
        month: the first moment of the month.

    Returns:
        The stored row; an unsaved row of zeros if there is none.
    """
    return GatewaySpending.objects.filter(provider=provider, month=month.date()).first() or GatewaySpending()


def list_provider_budgets(provider_ids: Iterable[int]) -> tuple[ProviderBudget, ...]:
    """Return the budgets of these providers in the order of their names, without providers that have none."""
    with_budget = Provider.objects.filter(pk__in=set(provider_ids), budget_per_month__isnull=False)
    budgets = (get_provider_budget(provider) for provider in with_budget.order_by("name"))
    return tuple(budget for budget in budgets if budget is not None)


def check_provider_budgets(provider_ids: Iterable[int]) -> None:
    """Check that none of these providers has spent its budget.

    Raises:
        BudgetReachedError: a provider has spent its budget for this month.
    """
    for budget in list_provider_budgets(provider_ids):
        if budget.is_reached:
            raise BudgetReachedError(budget.sentence)


def render_dollars(dollars: float) -> str:
    """Return dollars as text with two decimals, or with four below one dollar."""
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.4f}"
