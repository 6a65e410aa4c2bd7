"""What one trial spent, in pieces of SQL that every count of money and requests is made of: what the provider itself
named first, else the dated list price of that provider, else unknown."""

from collections.abc import Mapping

from django.db.models import QuerySet

from toolbench.engine.bounds import MAX_COST
from toolbench.evals.prices import Price, find_price
from toolbench.lab.models import RunConfig


def _render_bounded_cost(column: str) -> str:
    """Return the SQL of a cost in dollars that is unknown beyond its bounds, wherever it was stored from."""
    return f"CASE WHEN {column} BETWEEN 0 AND {MAX_COST} THEN {column} END"


# The steps that a trial's own figures do not hold, since its execution was lost, given back or tried again. `tried` are
# rows of lab_trial.
LOST_SPENDING_SQL = f"""
    SELECT trial.id, count(*) AS requests, count(*) FILTER (WHERE step.attempt > 1) AS retries,
        sum(step.input_tokens) AS input_tokens, sum(step.output_tokens) AS output_tokens,
        sum({_render_bounded_cost("step.cost")}) AS cost
    FROM tried AS trial JOIN lab_step AS step ON step.trial_id = trial.id AND step.kind = 'exchange'
        AND (step.execution < trial.execution OR trial.requests = 0)
    WHERE trial.execution > 1 OR (trial.execution = 1 AND trial.requests = 0)
    GROUP BY trial.id
"""

# Of `tried` with `spent` and `price` beside it. Who was answered nothing has paid nothing; an answer whose tokens
# nobody counted has no known price.
_REPORTED_COST = _render_bounded_cost("tried.cost")
HAS_REPORTED_COST_SQL = f"coalesce({_REPORTED_COST}, spent.cost) IS NOT NULL"
COST_SQL = f"""
    CASE WHEN {HAS_REPORTED_COST_SQL} THEN coalesce({_REPORTED_COST}, 0) + coalesce(spent.cost, 0)
        WHEN tried.input_tokens::float + tried.output_tokens + coalesce(spent.input_tokens, 0)
            + coalesce(spent.output_tokens, 0) > 0
        THEN (price.input * (tried.input_tokens::float + coalesce(spent.input_tokens, 0))
            + price.output * (tried.output_tokens::float + coalesce(spent.output_tokens, 0))) / 1000000
        WHEN tried.answered_turns = 0 THEN 0 END
"""


def find_prices(configs: QuerySet[RunConfig]) -> Mapping[int, Price]:
    """The list price of each configuration that has one, by its id. One query."""
    known = configs.filter(provider__isnull=False).order_by()
    found = {pk: find_price(*key) for pk, *key in known.values_list("pk", "provider__template", "model_name")}
    return {pk: price for pk, price in found.items() if price is not None}


def to_price_columns(prices: Mapping[int, Price]) -> tuple[list[int], list[float], list[float]]:
    """Ids of configurations, and dollars for a million input and output tokens, for `unnest`."""
    return list(prices), [one.input for one in prices.values()], [one.output for one in prices.values()]
