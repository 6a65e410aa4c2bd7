"""What trials cost: what the provider itself named first, else the dated list price of that provider, else unknown.
Failed, retried and lost requests are paid too."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from toolbench.evals.deciding import ratio
from toolbench.evals.prices import Price, price_of
from toolbench.evals.qualifying import Span
from toolbench.lab.models import RunConfig, Trial

# `spent` are the steps that a trial's own figures do not hold, since its execution was lost or tried again, as in
# lab.cells. A trial of the infrastructure without a token was answered nothing, and costs nothing.
_PAID = """
WITH mine AS (
    SELECT * FROM lab_trial WHERE outcome IN ('pass', 'fail', 'infra') AND id IN ({trials})
), spent AS (
    SELECT trial.id, sum(step.input_tokens) AS input, sum(step.output_tokens) AS output, sum(step.cost) AS cost
    FROM mine AS trial JOIN lab_step AS step ON step.trial_id = trial.id AND step.kind = 'exchange'
        AND step.execution < trial.execution
    WHERE trial.execution > 1 GROUP BY trial.id
), priced AS (
    SELECT mine.config_id, mine.outcome = 'pass' AND mine.errors_retried = 0 AS delivered,
        mine.cost IS NOT NULL OR spent.cost IS NOT NULL AS named,
        CASE WHEN mine.cost IS NOT NULL OR spent.cost IS NOT NULL THEN coalesce(mine.cost, 0) + coalesce(spent.cost, 0)
            WHEN mine.outcome = 'infra' AND mine.input_tokens + mine.output_tokens = 0
                AND coalesce(spent.input, 0) + coalesce(spent.output, 0) = 0 THEN 0
            ELSE (price.input * (mine.input_tokens + coalesce(spent.input, 0))
                + price.output * (mine.output_tokens + coalesce(spent.output, 0))) / 1000000 END AS dollars
    FROM mine LEFT JOIN spent USING (id)
    LEFT JOIN unnest(%s::bigint[], %s::float[], %s::float[]) AS price(config, input, output)
        ON price.config = mine.config_id
)
SELECT config_id, count(*), count(*) FILTER (WHERE named), count(dollars),
    coalesce(sum(dollars), 0), coalesce(sum(dollars * dollars), 0),
    coalesce(sum(dollars) FILTER (WHERE delivered), 0), count(*) FILTER (WHERE delivered)
FROM priced GROUP BY config_id
"""


@dataclass(frozen=True, slots=True)
class Paid:
    """Sums over `tried` trials, of which the provider named the cost of `named` and that of `known` is known at all:
    dollars, their squares, and the dollars of those `delivered`. `lists` are the price lists used for the rest."""

    tried: int = 0
    named: int = 0
    known: int = 0
    dollars: float = 0.0
    squares: float = 0.0
    with_pass: float = 0.0
    delivered: int = 0
    lists: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether every trial's cost is known, so that a sum may be shown."""
        return 0 < self.tried == self.known

    @property
    def words(self) -> str:
        """Where the figure comes from, or why there is none."""
        if not self.tried:
            return "nothing was tried"
        if not self.whole:
            return f"{self.tried - self.known} of {self.tried} trials have neither a named cost nor a list price"
        sources = ["named by the provider"] if self.named else []
        return "; ".join([*sources, *self.lists]) or "no request was answered"


def paid_of(trials: QuerySet[Trial]) -> Mapping[int, Paid]:
    """By configuration id. Two queries, whatever the number of trials."""
    chosen = trials.order_by().values("pk")
    configs = RunConfig.objects.filter(pk__in=trials.order_by().values("config_id"), provider__isnull=False)
    found = {pk: price_of(*key) for pk, *key in configs.values_list("pk", "provider__template", "model_name")}
    prices = {pk: price for pk, price in found.items() if price is not None}
    try:
        sql, params = chosen.query.sql_with_params()
    except EmptyResultSet:
        return {}
    asked, answered = [one.input for one in prices.values()], [one.output for one in prices.values()]
    with connection.cursor() as cursor:
        cursor.execute(_PAID.format(trials=sql), (*params, list(prices), asked, answered))
        rows = cursor.fetchall()
    return {pk: _paid(Paid(*sums), prices.get(pk)) for pk, *sums in rows}


def _paid(paid: Paid, price: Price | None) -> Paid:
    """With the list, where the provider did not name every cost."""
    return replace(paid, lists=(price.named,)) if price and paid.named < paid.known else paid


def paid_together(every: Iterable[Paid]) -> Paid:
    some = tuple(every)
    return Paid(
        tried=sum(one.tried for one in some),
        named=sum(one.named for one in some),
        known=sum(one.known for one in some),
        dollars=sum(one.dollars for one in some),
        squares=sum(one.squares for one in some),
        with_pass=sum(one.with_pass for one in some),
        delivered=sum(one.delivered for one in some),
        lists=tuple(dict.fromkeys(name for one in some for name in one.lists)),
    )


def cost_per_success(paid: Paid) -> Span | None:
    """Dollars per delivered success; None where a trial's cost is not known, nothing was paid or nothing delivered."""
    if not paid.whole:
        return None
    return ratio(paid.dollars, paid.squares, with_pass=paid.with_pass, passed=paid.delivered, tried=paid.tried)
