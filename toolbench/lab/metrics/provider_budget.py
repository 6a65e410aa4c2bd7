"""Budgets of providers per calendar month (UTC), and what their trials and the gateway's requests cost in a month.

The costs of probes are not included, nor are unknown costs.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from toolbench.lab.metrics.spending import COST_SQL, LOST_SPENDING_SQL, find_prices, to_price_columns
from toolbench.lab.models import GatewaySpending, Provider, RunConfig
from toolbench.lab.sql import load_statement

MIN_BUDGET = 0.01  # dollars
MAX_BUDGET = 1_000_000.0  # dollars


class BudgetReachedError(Exception):
    """Raised when a provider has spent its budget for this month; the message says what to do."""


@dataclass(frozen=True, slots=True)
class ProviderBudget:
    """The budget of a provider, and what its trials and the gateway's requests to it cost in this month.

    Attributes:
        provider: name of the provider.
        dollars: the budget.
        spent: sum of the known costs, in dollars, of the trials that ended in the month and of the gateway's requests.
        known: number of trials that ended in the month and whose cost is known.
        unknown: number of trials that ended in the month and whose cost is unknown.
        running: number of trials in state `running` now.
        concurrency: the concurrency limit; with an adaptive limit, its maximum.
        month: the first moment of the month.
        gateway_spent: the part of `spent`, in dollars, that the gateway's requests cost.
        gateway_known: number of the gateway's requests in the month whose cost is known.
        gateway_unknown: number of the gateway's answered requests in the month whose cost is unknown.
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
        """Whether the budget is spent, so that no new trial may start."""
        return self.spent >= self.dollars

    @property
    def next_month(self) -> datetime:
        """The first moment of the next month."""
        return (self.month + timedelta(days=31)).replace(day=1)

    @property
    def sentence(self) -> str:
        """The message for a spent budget, which says what to do."""
        return (
            f"{self.provider} has spent {render_dollars(self.spent)} of its budget of {render_dollars(self.dollars)} "
            f"for {self.month:%B %Y} (UTC), so no new trial starts. Raise the budget on the provider's page, "
            f"or wait until 1 {self.next_month:%B}."
        )

    def count_affordable(self) -> int | None:
        """Return how many more trials may start now.

        Each running and each further trial is assumed to cost the mean of the month's trials with a known cost. While
        there is no such trial, trials may start up to the concurrency limit. If no trial is running and the budget is
        not reached, the result is at least 1.

        Returns:
            The number; None if any number may start, since the month's trials with a known cost were free.
        """
        if self.is_reached:
            return 0
        if not self.known:
            return max(0, self.concurrency - self.running)
        if not (trials_spent := self.spent - self.gateway_spent):
            return None
        mean = trials_spent / self.known
        return max(0, math.ceil((self.dollars - self.spent) / mean) - self.running)


class _MonthSpending(NamedTuple):
    """A row of month_spending.sql without the provider."""

    known: int
    unknown: int
    dollars: float
    running: int
    gateway_dollars: float
    gateway_known: int
    gateway_unknown: int


def compute_month_start() -> datetime:
    """Return the first moment of the current calendar month in UTC."""
    return timezone.now().astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def get_provider_budget(provider: Provider) -> ProviderBudget | None:
    """Return the budget of a provider, with at most two queries; None if it has none."""
    return next(iter(load_budgets([provider])), None)


def load_budgets(providers: Iterable[Provider]) -> tuple[ProviderBudget, ...]:
    """Return the budgets of those providers that have one, in the given order, with at most two queries."""
    budgeted = {provider.pk: provider for provider in providers if provider.budget_per_month is not None}
    if not budgeted:
        return ()
    month = compute_month_start()
    spending = _sum_spending(tuple(budgeted), month)
    return tuple(_build_budget(provider, month, spending[pk]) for pk, provider in budgeted.items())


def _build_budget(provider: Provider, month: datetime, spending: _MonthSpending) -> ProviderBudget:
    return ProviderBudget(
        provider=provider.name,
        dollars=provider.budget_per_month or 0.0,
        spent=spending.dollars + spending.gateway_dollars,
        known=spending.known,
        unknown=spending.unknown,
        running=spending.running,
        concurrency=provider.concurrency,
        month=month,
        gateway_spent=spending.gateway_dollars,
        gateway_known=spending.gateway_known,
        gateway_unknown=spending.gateway_unknown,
    )


def _sum_spending(provider_ids: Sequence[int], month: datetime) -> dict[int, _MonthSpending]:
    """Return what each provider's trials and gateway requests cost since a month began, by provider id.

    Args:
        provider_ids: the providers; the result has a key for each.
        month: the first moment of the present month.
    """
    has_run_this_month = Q(run__finished_at=None) | Q(run__finished_at__gte=month)
    prices = find_prices(RunConfig.objects.filter(has_run_this_month, provider__in=provider_ids))
    configs, inputs, outputs = to_price_columns(prices)
    parameters: dict[str, Any] = {
        "providers": list(provider_ids),
        "since": month,
        "month": month.date(),
        "configs": configs,
        "inputs": inputs,
        "outputs": outputs,
    }
    statement = load_statement("metrics/month_spending", lost_spending=LOST_SPENDING_SQL, cost=COST_SQL)
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return {provider_id: _MonthSpending(*figures) for provider_id, *figures in cursor.fetchall()}


def get_gateway_spending(provider: Provider, month: datetime) -> GatewaySpending:
    """Return what the gateway's requests to a provider cost in a month, with one query.

    Args:
        provider: the provider.
        month: the first moment of the month.

    Returns:
        The stored row; an unsaved row of zeros if there is none.
    """
    return GatewaySpending.objects.filter(provider=provider, month=month.date()).first() or GatewaySpending()


def list_provider_budgets(provider_ids: Iterable[int]) -> tuple[ProviderBudget, ...]:
    """Return the budgets of those providers that have one, in the order of their names, with at most three queries."""
    return load_budgets(Provider.objects.filter(pk__in=set(provider_ids)).order_by("name"))


def check_provider_budgets(providers: Iterable[Provider]) -> None:
    """Check that none of these providers has spent its budget.

    Raises:
        BudgetReachedError: a provider has spent its budget for this month.
    """
    for budget in load_budgets(providers):
        if budget.is_reached:
            raise BudgetReachedError(budget.sentence)


def render_dollars(dollars: float) -> str:
    """Return dollars as text with two decimals, such as $1,234.50; below one dollar with four, such as $0.0312."""
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.4f}"
