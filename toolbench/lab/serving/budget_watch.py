"""Check of the budgets of providers for the gateway, cheap enough to be made often."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from toolbench.lab.metrics.provider_budget import (
    ProviderBudget,
    compute_month_start,
    get_gateway_spending,
    get_provider_budget,
)
from toolbench.lab.models import Provider

PAUSE_FACTOR = 20  # so that adding up the trials of one provider takes less than 5 % of the time


@dataclass(frozen=True, slots=True)
class _TrialSum:
    """Sum of the costs of a provider's trials in one month.

    Attributes:
        budget: the budget; its `spent` has only the costs of trials, not those of the gateway.
        due_at: time from which the trials are added up again, in seconds of the clock of the watch.
    """

    budget: ProviderBudget
    due_at: float


class BudgetWatch:
    """Watch over the budgets of providers; an instance is not thread-safe.

    The costs of the gateway's requests are stored as sums and read each time. The costs of trials have to be added up,
    which takes longer the more trials the month has. So each of these sums is used PAUSE_FACTOR times as long as it
    took to compute, but only within its month.

    Args:
        clock: returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sums: dict[int, _TrialSum] = {}

    def find_refusals(self) -> Mapping[int, str]:
        """Return the reason for refusing requests to each provider that has spent its budget, by provider id."""
        providers = Provider.objects.filter(budget_per_month__isnull=False)
        budgets = {provider.pk: self._get_budget(provider) for provider in providers}
        return {pk: budget.sentence for pk, budget in budgets.items() if budget and budget.is_reached}

    def _get_budget(self, provider: Provider) -> ProviderBudget | None:
        """Return the budget of a provider with what was spent this month; None if the provider has no budget."""
        trial_sum, month = self._sums.get(provider.pk), compute_month_start()
        if trial_sum is None or self._clock() >= trial_sum.due_at or trial_sum.budget.month != month:
            started = self._clock()
            budget = get_provider_budget(provider)
            if budget is None:
                return None
            ended = self._clock()
            due_at = ended + PAUSE_FACTOR * (ended - started)
            self._sums[provider.pk] = _TrialSum(replace(budget, spent=budget.spent - budget.gateway_spent), due_at)
            return budget
        gateway = get_gateway_spending(provider, month)
        return replace(
            trial_sum.budget,
            provider=provider.name,
            dollars=provider.budget_per_month or 0.0,
            spent=trial_sum.budget.spent + gateway.dollars,
        )
