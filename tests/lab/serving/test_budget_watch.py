"""Budgets as the gateway checks them: its own costs each time, trials at intervals that keep their summing cheap."""

from datetime import timedelta
from uuid import uuid4

import pytest

from tests.factories import make_provider
from tests.lab.metrics.test_provider_budget import spend
from toolbench.lab.metrics import provider_budget
from toolbench.lab.models import Provider
from toolbench.lab.serving import budget_watch
from toolbench.lab.serving.budget_watch import PAUSE_FACTOR, BudgetWatch
from toolbench.lab.serving.spending import Spending, SpendingBatch, add_spending

pytestmark = pytest.mark.django_db


class Clock:
    """Clock that moves on by `step` with each reading."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def provider() -> Provider:
    return make_provider(budget_per_month=1.0)


def test_budget_watch_find_refusals_names_providers_over_budget(provider: Provider) -> None:
    make_provider("without a budget")
    watch = BudgetWatch()
    assert watch.find_refusals() == {}
    add_spending(SpendingBatch(uuid4(), 1, {provider.pk: Spending(1.5, 2)}))
    assert "has spent $1.50 of its budget of $1.00" in watch.find_refusals()[provider.pk]


def test_budget_watch_sums_trials_again_after_pause_factor(provider: Provider) -> None:
    clock = Clock(1.0)
    watch = BudgetWatch(clock)
    assert watch.find_refusals() == {}  # summing took one second
    spend(provider, 2.0)
    assert watch.find_refusals() == {}
    clock.now += PAUSE_FACTOR
    assert list(watch.find_refusals()) == [provider.pk]


def test_budget_watch_uses_raised_budget_immediately(provider: Provider) -> None:
    spend(provider, 2.0)
    watch = BudgetWatch(Clock(1.0))
    assert list(watch.find_refusals()) == [provider.pk]
    Provider.objects.update(budget_per_month=3.0)
    assert watch.find_refusals() == {}


def test_budget_watch_new_month_omits_costs_of_previous_one(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_spending(SpendingBatch(uuid4(), 1, {provider.pk: Spending(1.5, 2)}))
    watch = BudgetWatch(Clock(1.0))
    assert list(watch.find_refusals()) == [provider.pk]
    next_month = (provider_budget.compute_month_start() + timedelta(days=31)).replace(day=1)
    for module in (budget_watch, provider_budget):
        monkeypatch.setattr(module, "compute_month_start", lambda: next_month)
    assert watch.find_refusals() == {}
