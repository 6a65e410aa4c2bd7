"""Costs of trials: those that the provider reported, else by its dated list price, else unknown.

Failed, retried and lost requests are included.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from toolbench.evals.decisions.assessments import IntervalEstimate
from toolbench.evals.decisions.choice import compute_cost_ratio
from toolbench.evals.prices import Price
from toolbench.lab.metrics.spending import (
    COST_SQL,
    HAS_REPORTED_COST_SQL,
    LOST_SPENDING_SQL,
    find_prices,
    to_price_columns,
)
from toolbench.lab.models import RunConfig, Trial
from toolbench.lab.sql import load_statement


@dataclass(frozen=True, slots=True)
class CostSums:
    """Sums of costs over trials.

    Attributes:
        tried: trials.
        named: trials whose cost the provider reported.
        known: trials whose cost is known.
        dollars: sum of the known costs.
        squares: sum of their squares.
        with_pass: dollars of delivered trials.
        delivered: delivered trials.
        price_lists: names of the price lists that were used.
    """

    tried: int = 0
    named: int = 0
    known: int = 0
    dollars: float = 0.0
    squares: float = 0.0
    with_pass: float = 0.0
    delivered: int = 0
    price_lists: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether the cost of every trial is known, so that the sum may be shown."""
        return 0 < self.tried == self.known

    @property
    def source(self) -> str:
        """Sources of the figure, or the reason why it is unknown."""
        if not self.tried:
            return "nothing was tried"
        if not self.is_complete:
            return f"{self.tried - self.known} of {self.tried} trials have neither a named cost nor a list price"
        sources = ["named by the provider"] if self.named else []
        return "; ".join([*sources, *self.price_lists]) or "no request was answered"


def sum_costs(trials: QuerySet[Trial]) -> Mapping[int, CostSums]:
    """Sum costs by configuration id, with two queries for any number of trials."""
    chosen = trials.order_by().values("pk")
    prices = find_prices(RunConfig.objects.filter(pk__in=trials.order_by().values("config_id")))
    try:
        sql, params = chosen.query.sql_with_params()
    except EmptyResultSet:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            load_statement(
                "metrics/cost_by_configuration",
                trials=sql,
                lost_spending=LOST_SPENDING_SQL,
                has_reported_cost=HAS_REPORTED_COST_SQL,
                cost=COST_SQL,
            ),
            (*params, *to_price_columns(prices)),
        )
        rows = cursor.fetchall()
    return {pk: _add_price_list(CostSums(*sums), prices.get(pk)) for pk, *sums in rows}


def _add_price_list(paid: CostSums, price: Price | None) -> CostSums:
    """Return the sums with the name of the price list, if the provider did not report every cost."""
    return replace(paid, price_lists=(price.origin,)) if price and paid.named < paid.known else paid


def add_costs(costs: Iterable[CostSums]) -> CostSums:
    """Add up sums of costs."""
    sums = tuple(costs)
    return CostSums(
        tried=sum(cost.tried for cost in sums),
        named=sum(cost.named for cost in sums),
        known=sum(cost.known for cost in sums),
        dollars=sum(cost.dollars for cost in sums),
        squares=sum(cost.squares for cost in sums),
        with_pass=sum(cost.with_pass for cost in sums),
        delivered=sum(cost.delivered for cost in sums),
        price_lists=tuple(dict.fromkeys(name for cost in sums for name in cost.price_lists)),
    )


def estimate_cost_per_success(paid: CostSums) -> IntervalEstimate | None:
    """Estimate the dollars per delivered success.

    Returns:
        None where the cost of a trial is unknown, nothing was paid or nothing delivered.
    """
    if not paid.is_complete:
        return None
    return compute_cost_ratio(
        paid.dollars, paid.squares, with_pass=paid.with_pass, passed=paid.delivered, tried=paid.tried
    )
