"""The budget of a provider: what counts, when it is reached and how many trials may start."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_trial
from toolbench.lab.metrics.provider_budget import (
    BudgetReachedError,
    ProviderBudget,
    check_provider_budgets,
    get_provider_budget,
    list_provider_budgets,
)
from toolbench.lab.models import GatewaySpending, Provider, Run, Trial
from toolbench.lab.serving.spending import Spending, SpendingBatch, add_spending

pytestmark = pytest.mark.django_db


def spend(provider: Provider, *costs: float | None, outcome: str = "pass", **run_fields: Any) -> Run:
    """Add a run whose trials ended now, with these costs; None is an unknown cost."""
    run = make_run(**run_fields)
    cell = make_cell(make_config(run, make_model(provider=provider)))
    for cost in costs:
        trial = make_trial(cell, outcome, cost=cost, input_tokens=10, answered_turns=1)
        Trial.objects.filter(pk=trial.pk).update(finished_at=timezone.now())
    return run


def read_budget(provider: Provider) -> ProviderBudget:
    budget = get_provider_budget(provider)
    assert budget is not None
    return budget


def test_get_provider_budget_without_budget_is_none() -> None:
    provider = make_provider()
    assert get_provider_budget(provider) is None
    assert list_provider_budgets([provider.pk]) == ()


def test_get_provider_budget_counts_deleted_and_cancelled_runs() -> None:
    provider = make_provider(budget_per_month=1.0)
    spend(provider, 0.25, 0.125)
    spend(provider, 0.25, deleted_at=timezone.now())
    spend(provider, 0.125, outcome="cancelled")
    spend(make_provider("Other"), 9.0)
    budget = read_budget(provider)
    assert (budget.spent, budget.known, budget.unknown, budget.is_reached) == (0.75, 4, 0, False)


def test_get_provider_budget_omits_gateway_from_mean_trial_cost() -> None:
    provider = make_provider(budget_per_month=2.0)
    spend(provider, 0.25, 0.25)
    add_spending(SpendingBatch(uuid4(), 1, {provider.pk: Spending(1.0, 4, 3)}))
    budget = read_budget(provider)
    assert (budget.spent, budget.gateway_spent, budget.gateway_known, budget.gateway_unknown) == (1.5, 1.0, 4, 3)
    assert budget.count_affordable() == 2
    GatewaySpending.objects.update(month="2020-01-01")
    assert read_budget(provider).spent == 0.5


def test_get_provider_budget_counts_unknown_costs_separately() -> None:
    provider = make_provider(budget_per_month=1.0)
    spend(provider, 0.25, None, None)
    budget = read_budget(provider)
    assert (budget.spent, budget.known, budget.unknown) == (0.25, 1, 2)


def test_get_provider_budget_omits_earlier_months() -> None:
    provider = make_provider(budget_per_month=1.0)
    run = spend(provider, 5.0)
    before = timezone.now().astimezone(UTC).replace(day=1, hour=0, minute=0, second=0) - timedelta(seconds=1)
    run.trials.update(finished_at=before)
    assert read_budget(provider).spent == 0


def test_list_provider_budgets_reads_all_providers_at_once(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    providers = [make_provider(name, budget_per_month=1.0) for name in ("Beta", "Alpha", "Unused")]
    spend(providers[0], 0.25, None)
    spend(providers[1], 0.5)
    add_spending(SpendingBatch(uuid4(), 1, {providers[1].pk: Spending(0.125, 1, 0)}))
    others = [make_provider("No budget")]
    with django_assert_num_queries(3):
        budgets = list_provider_budgets(provider.pk for provider in [*providers, *others])
    assert [(budget.provider, budget.spent, budget.known, budget.unknown) for budget in budgets] == [
        ("Alpha", 0.625, 1, 0),
        ("Beta", 0.25, 1, 1),
        ("Unused", 0.0, 0, 0),
    ]


def test_check_provider_budgets_raises_at_reached_budget() -> None:
    provider = make_provider(budget_per_month=0.5)
    spend(provider, 0.25, 0.25)
    with pytest.raises(BudgetReachedError, match=r"Example has spent \$0.5000 of its budget of \$0.5000 for"):
        check_provider_budgets([provider])
    provider.budget_per_month = 0.75
    check_provider_budgets([provider])


@pytest.mark.parametrize(
    ("spent", "known", "running", "affordable"),
    [
        (0.0, 0, 0, 8),
        (0.0, 0, 3, 5),
        (0.0, 5, 3, None),
        (0.5, 5, 0, 5),
        (0.5, 5, 4, 1),
        (0.5, 5, 8, 0),
        (0.95, 5, 0, 1),
        (0.95, 5, 1, 0),
        (1.0, 5, 0, 0),
        (1.2, 5, 0, 0),
    ],
)
def test_count_affordable_reserves_mean_cost_of_running_trials(
    spent: float, known: int, running: int, affordable: int | None
) -> None:
    month = datetime(2026, 12, 1, tzinfo=UTC)
    budget = ProviderBudget("Example", 1.0, spent, known, 0, running=running, concurrency=8, month=month)
    assert budget.count_affordable() == affordable


def test_provider_budget_sentence_names_month_and_its_end() -> None:
    month = datetime(2026, 12, 1, tzinfo=UTC)
    budget = ProviderBudget("Example", 5.0, 5.25, 9, 0, running=0, concurrency=8, month=month)
    assert budget.sentence == (
        "Example has spent $5.25 of its budget of $5.00 for December 2026 (UTC), so no new trial starts. "
        "Raise the budget on the provider's page, or wait until 1 January."
    )
