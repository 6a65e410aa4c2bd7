"""SQL fragments for the cost and the lost spending of trials, and the prices of configurations.

The cost of a trial is the one that the provider reported, else it follows from the price, else it is unknown.
"""

from collections.abc import Mapping

from django.db.models import Max, QuerySet

from toolbench.engine.bounds import MAX_COST_USD
from toolbench.evals.prices import Price, read_price
from toolbench.lab.models import RunConfig
from toolbench.lab.paid_requests import find_model_price
from toolbench.lab.sql import load_statement


def _render_bounded_cost(column: str) -> str:
    """Return the SQL of a cost column in dollars, with NULL instead of values below 0 or above MAX_COST_USD."""
    return f"CASE WHEN {column} BETWEEN 0 AND {MAX_COST_USD} THEN {column} END"


def _render_lost_spending(steps: str) -> str:
    return load_statement("metrics/lost_spending", step_cost=_render_bounded_cost("step.cost"), steps=steps)


# Spending that the columns of trials leave out (lost_spending.sql). One join reads the steps of all trials, which is
# fastest for the trials of large runs.
LOST_SPENDING_SQL = _render_lost_spending("JOIN lab_step AS step ON step.trial_id = trial.id")
# The same, but the steps are looked up for each trial, for the reason in the head of recompute_cells.sql.
LOST_SPENDING_OF_CELLS_SQL = _render_lost_spending(
    "CROSS JOIN LATERAL (SELECT * FROM lab_step WHERE trial_id = trial.id OFFSET 0) AS step"
)

# Expressions over `trials`, `spent` and `price`, which the head of cost.sql describes.
_REPORTED_COST = _render_bounded_cost("trials.cost")
HAS_REPORTED_COST_SQL = f"coalesce({_REPORTED_COST}, spent.cost) IS NOT NULL"
COST_SQL = load_statement("metrics/cost", has_reported_cost=HAS_REPORTED_COST_SQL, reported_cost=_REPORTED_COST)


def find_prices(configs: QuerySet[RunConfig]) -> Mapping[int, Price]:
    """Return the prices of configurations by id, with one query; a configuration without a price is missing.

    The price is the one stored with the configuration: a user had set it for the model when the run started, or the
    imported bundle states it. Without a stored price, it is the list price. Without either, it is 0 if the provider is
    local, simulated or at a private address.

    A configuration has no provider if it was imported or the provider was deleted. Only a stored price counts then.
    """
    prices = {config.pk: _find_price(config) for config in _select_price_columns(configs)}
    return {pk: price for pk, price in prices.items() if price is not None}


def find_price_origins() -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Return the origins of the prices of all configurations, by provider name and model name, with one query.

    Returns:
        Sorted texts, as in `Price.origin`. A model without a price is missing.
    """
    origins: dict[tuple[str, str], tuple[str, ...]] = {}
    alike = RunConfig.objects.order_by().values("provider_id", "provider_name", "model_name", "price")
    newest_ids = alike.annotate(newest=Max("pk")).values("newest")  # unlike `distinct`, not sorted
    for config in _select_price_columns(RunConfig.objects.filter(pk__in=newest_ids)):
        price = _find_price(config)
        if price is not None:
            key = (config.provider_name, config.model_name)
            origins[key] = tuple(sorted({*origins.get(key, ()), price.origin}))
    return origins


def to_price_columns(prices: Mapping[int, Price]) -> tuple[list[int], list[float], list[float]]:
    """Return three lists for `unnest`: configuration ids, and dollars per million input and output tokens."""
    return list(prices), [price.input for price in prices.values()], [price.output for price in prices.values()]


def _select_price_columns(configs: QuerySet[RunConfig]) -> QuerySet[RunConfig]:
    """Return the configurations with only the columns from which `_find_price` finds their price."""
    provider_columns = ("provider__kind", "provider__base_url", "provider__template")
    return configs.select_related("provider").only("provider_name", "model_name", "price", *provider_columns)


def _find_price(config: RunConfig) -> Price | None:
    if config.provider is None:
        return read_price(config.price, "", config.model_name)
    return find_model_price(config.provider, config.model_name, config.price)
