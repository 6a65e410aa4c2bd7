"""Sums of the costs and tokens of trials that passed, failed or had an infrastructure error.

The cost of a trial is the one that the provider reported, else it follows from the price, else it is unknown. Failed,
retried and lost requests are included.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Q, QuerySet

from toolbench.evals.decisions.assessments import IntervalEstimate
from toolbench.evals.decisions.choice import compute_cost_ratio
from toolbench.evals.prices import Price
from toolbench.lab.metrics.repeated_instances import TRIED
from toolbench.lab.metrics.spending import (
    COST_SQL,
    HAS_REPORTED_COST_SQL,
    LOST_SPENDING_SQL,
    find_prices,
    to_price_columns,
)
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.models import RunConfig, Trial
from toolbench.lab.sql import load_statement

# Columns that cost_by_configuration.sql and its fragments read. A whole row is twenty times as wide, and the statement
# keeps the rows until its end.
_COLUMNS = (
    *("id", "config_id", "outcome", "errors_retried", "execution", "requests", "answered_turns"),
    *("input_tokens", "output_tokens", "cost"),
)


@dataclass(frozen=True, slots=True)
class CostSums:
    """Sums of costs and tokens over trials.

    Attributes:
        tried: number of trials that passed, failed or had an infrastructure error.
        reported: number of trials whose cost the provider reported.
        known: number of trials whose cost is known.
        dollars: sum of the known costs.
        squared_dollars: sum of the squares of the known costs.
        delivered_dollars: dollars of end-to-end successes.
        delivered: number of end-to-end successes: trials that passed and that no user had retried after an error.
        tokens: number of input and output tokens, those of lost executions included.
        price_lists: origins of the prices that were used (`Price.origin`), without repeats.
    """

    tried: int = 0
    reported: int = 0
    known: int = 0
    dollars: float = 0.0
    squared_dollars: float = 0.0
    delivered_dollars: float = 0.0
    delivered: int = 0
    tokens: int = 0
    price_lists: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether there are trials and the cost of each is known."""
        return 0 < self.tried == self.known

    @property
    def source(self) -> str:
        """The sources of the cost per success, or why it is unknown, in words."""
        if not self.tried:
            return "there are no trials"
        if not self.is_complete:
            unknown = f"{self.tried - self.known} of {self.tried} trials"
            return f"{unknown} have no reported cost, and their price or their tokens are not known"
        if not self.delivered:
            return "there is no end-to-end success"
        sources = ["reported by the provider"] if self.reported else []
        return "; ".join([*sources, *self.price_lists]) or "no request was answered"


def sum_costs(trials: QuerySet[Trial], configs: Collection[int] | None = None) -> Mapping[int, CostSums]:
    """Return the sums of these trials by configuration id, with at most two queries.

    Args:
        trials: the trials.
        configs: ids of the configurations of those trials that passed, failed or had an infrastructure error; None to
            find them by reading the trials once more.
    """
    tried = trials.filter(TRIED).order_by().values(*_COLUMNS)
    is_used = Q(pk__in=trials.order_by().values("config_id")) if configs is None else Q(pk__in=configs)
    prices = find_prices(RunConfig.objects.filter(is_used))
    try:
        sql, params = tried.query.sql_with_params()
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
    return {
        pk: _add_price_list(replace(CostSums(*sums), tokens=int(tokens)), prices.get(pk)) for pk, *sums, tokens in rows
    }


def _add_price_list(costs: CostSums, price: Price | None) -> CostSums:
    """Return the sums with the origin of the price, if there is one and the provider did not report every cost."""
    return replace(costs, price_lists=(price.origin,)) if price and costs.reported < costs.known else costs


def sum_cell_costs(tallies: Collection[tuple[int, Tally]]) -> CostSums:
    """Return the sums over tallies of cells, with one query.

    Args:
        tallies: pairs of the id of a configuration and a tally of its cells.
    """
    prices = find_prices(RunConfig.objects.filter(pk__in={pk for pk, _ in tallies}))
    return add_costs(_add_price_list(build_cost_sums(tally), prices.get(pk)) for pk, tally in tallies)


def build_cost_sums(tally: Tally, price_lists: tuple[str, ...] = ()) -> CostSums:
    """Return the sums of the costs of a tally.

    Args:
        tally: counts of cells.
        price_lists: origins of the prices of these cells; not used if the provider reported each known cost.
    """
    return CostSums(
        tried=tally.tried,
        reported=tally.costs_reported,
        known=tally.costs_known,
        dollars=tally.known_dollars,
        squared_dollars=tally.squared_dollars,
        delivered_dollars=tally.delivered_dollars,
        delivered=tally.passed - tally.late_passes,
        tokens=tally.tried_tokens,
        price_lists=price_lists if tally.costs_reported < tally.costs_known else (),
    )


def add_costs(costs: Iterable[CostSums]) -> CostSums:
    """Add up the sums of several sets of trials."""
    sums = tuple(costs)
    return CostSums(
        tried=sum(cost.tried for cost in sums),
        reported=sum(cost.reported for cost in sums),
        known=sum(cost.known for cost in sums),
        dollars=sum(cost.dollars for cost in sums),
        squared_dollars=sum(cost.squared_dollars for cost in sums),
        delivered_dollars=sum(cost.delivered_dollars for cost in sums),
        delivered=sum(cost.delivered for cost in sums),
        tokens=sum(cost.tokens for cost in sums),
        price_lists=tuple(dict.fromkeys(name for cost in sums for name in cost.price_lists)),
    )


def estimate_cost_per_success(costs: CostSums) -> IntervalEstimate | None:
    """Estimate the dollars per end-to-end success, with an interval.

    Returns:
        The estimate; None if the cost of a trial is unknown or there is no end-to-end success.
    """
    if not costs.is_complete:
        return None
    return compute_cost_ratio(
        costs.dollars,
        costs.squared_dollars,
        passed_cost_sum=costs.delivered_dollars,
        passed=costs.delivered,
        tried=costs.tried,
    )
