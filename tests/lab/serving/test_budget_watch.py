"""Budgets as the gateway checks them: its own costs each time, trials only as often as adding them up is cheap."""

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


def test_watch_names_the_providers_that_spent_their_budget(provider: Provider) -> None:
    make_provider("without a budget")
    watch = BudgetWatch()
    assert watch.find_refusals() == {}
    add_spending(SpendingBatch(uuid4(), 1, {provider.pk: Spending(1.5, 2)}))
    assert "has spent $1.50 of its budget of $1.00" in watch.find_refusals()[provider.pk]


def test_trials_are_added_up_again_after_twenty_times_as_long(provider: Provider) -> None:
    clock = Clock(1.0)
    watch = BudgetWatch(clock)
    assert watch.find_refusals() == {}  # adding up took one second
    spend(provider, 2.0)
    assert watch.find_refusals() == {}
    clock.now += PAUSE_FACTOR
    assert list(watch.find_refusals()) == [provider.pk]


def test_budget_that_is_raised_counts_at_once(provider: Provider) -> None:
    spend(provider, 2.0)
    watch = BudgetWatch(Clock(1.0))
    assert list(watch.find_refusals()) == [provider.pk]
    Provider.objects.update(budget_per_month=3.0)
    assert watch.find_refusals() == {}


def test_new_month_begins_without_the_costs_of_the_last(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    add_spending(SpendingBatch(uuid4(), 1, {provider.pk: Spending(1.5, 2)}))
    watch = BudgetWatch(Clock(1.0))
    assert list(watch.find_refusals()) == [provider.pk]
    next_month = (provider_budget.compute_month_start() + timedelta(days=31)).replace(day=1)
    for module in (budget_watch, provider_budget):
        monkeypatch.setattr(module, "compute_month_start", lambda: next_month)
    assert watch.find_refusals() == {}
