"""Counts of answers with status 429 and 5xx, retries and back-off of trials.

The steps of every execution of a trial are counted. An answer with another status, such as 200, counts too if its error
code names a rate limit or a server error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from django.db.models import Aggregate, Case, Count, Exists, OuterRef, Q, QuerySet, Subquery, Sum, When
from django.db.models.functions import Coalesce

from toolbench.lab.metrics.tally import Tally
from toolbench.lab.models import Step, Trial
from toolbench.lab.models.trials import ANSWERED, RETRY_RELEVANT_STEP
from toolbench.lab.sql import load_statement

# Error codes of providers/data/outcomes.json.
_RATE_LIMIT_CODES = ("rate_limited",)
_SERVER_ERROR_CODES = ("server_error", "bad_gateway", "unavailable", "gateway_timeout", "overloaded", "server_failed")


def _render_codes(codes: tuple[str, ...]) -> str:
    return ", ".join(f"'{code}'" for code in codes)


_IS_429 = f"(step.status = 429 OR step.error_code IN ({_render_codes(_RATE_LIMIT_CODES)}))"
_IS_5XX = f"(step.status BETWEEN 500 AND 599 OR step.error_code IN ({_render_codes(_SERVER_ERROR_CODES)}))"
# Steps whose status is unknown, as in imported logs. Not among them: a request that failed without a response. It has
# no status either, but certainly got neither 429 nor 5xx.
_WITHOUT_STATUS = "(step.status IS NULL AND (step.ok IS NOT FALSE OR step.error_code = 'logged_error'))"

# Conditions on steps for the ORM, by value of the trial filter "had"; the first two are as _IS_429 and _IS_5XX.
RETRY_CONDITIONS: Mapping[str, Q] = {
    "429": Q(status=429) | Q(error_code__in=_RATE_LIMIT_CODES),
    "5xx": Q(status__range=(500, 599)) | Q(error_code__in=_SERVER_ERROR_CODES),
    "retry": Q(attempt__gt=1),
}
_LACKS_STATUS = Q(status=None) & (Q(ok=True) | Q(ok=None) | Q(error_code="logged_error"))  # as _WITHOUT_STATUS

RETRY_COUNTS_SQL = load_statement(
    "metrics/retry_counts", is_429=_IS_429, is_5xx=_IS_5XX, without_status=_WITHOUT_STATUS
)

# Columns that `annotate_retry_counts` adds to trials.
TRIAL_RETRY_COLUMNS = ("answers_429", "answers_5xx", "retries_all", "backoff_ms_all")


@dataclass(frozen=True, slots=True)
class RetryCounts:
    """Counts of answers with status 429 and 5xx, retries and back-off.

    Attributes:
        trials_429: number of trials with an answer with status 429.
        trials_5xx: number of trials with an answer with status 5xx.
        trials_retried: number of trials with a retry.
        backoff_ms: sum of the waits before retries.
        retries_known: False if the counts are incomplete: a step lacks its status, answered trials have no counted
            request, or a cell could not be computed.
    """

    answers_429: int = 0
    answers_5xx: int = 0
    retries: int = 0
    trials_429: int = 0
    trials_5xx: int = 0
    trials_retried: int = 0
    backoff_ms: float = 0.0
    retries_known: bool = True

    def __add__(self, other: "RetryCounts") -> "RetryCounts":
        sums = {field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)}
        return RetryCounts(**sums | {"retries_known": self.retries_known and other.retries_known})


def filter_by_retries(trials: QuerySet[Trial], had: str, *, starts_at_steps: bool) -> QuerySet[Trial]:
    """Return the trials that have a step of one kind, in any execution.

    Args:
        trials: the trials to filter.
        had: the kind of step, a key of RETRY_CONDITIONS; "" for no filter.
        starts_at_steps: True to find the steps first and then their trials, which is faster if `trials` are most of all
            trials; False to look up the steps of each trial.
    """
    if not had:
        return trials
    steps = Step.objects.filter(RETRY_RELEVANT_STEP & RETRY_CONDITIONS[had])
    if starts_at_steps:
        # Django drops the order of a subquery, unless `distinct` names a column. The order is that of a list of the
        # newest trials.
        return trials.filter(pk__in=steps.order_by("-trial_id").distinct("trial_id").values("trial_id"))
    return trials.filter(Exists(steps.filter(trial=OuterRef("pk"))))


def annotate_retry_counts(trials: QuerySet[Trial]) -> QuerySet[Trial]:
    """Add the columns TRIAL_RETRY_COLUMNS to trials: sums over all executions; None if they are unknown."""
    steps = Step.objects.filter(RETRY_RELEVANT_STEP, trial=OuterRef("pk")).order_by()
    is_unknown = Exists(steps.filter(_LACKS_STATUS)) | ANSWERED & Q(requests=0)
    aggregates: dict[str, Aggregate] = {
        "answers_429": Count("pk", filter=RETRY_CONDITIONS["429"]),
        "answers_5xx": Count("pk", filter=RETRY_CONDITIONS["5xx"]),
        "retries_all": Count("pk", filter=RETRY_CONDITIONS["retry"]),
        "backoff_ms_all": Sum("backoff_ms"),
    }
    return trials.annotate(
        **{
            name: Case(
                When(is_unknown, then=None),
                default=Coalesce(Subquery(steps.values("trial").annotate(value=figure).values("value")), zero),
            )
            for (name, figure), zero in zip(aggregates.items(), (0, 0, 0, 0.0), strict=True)
        }
    )


def count_retries(trials: QuerySet[Trial]) -> Mapping[str, RetryCounts]:
    """Return the counts of these trials by scenario, with two queries.

    As in a tally, the counts of a scenario are incomplete (`retries_known` is False) if a step lacks its status, or if
    the scenario has answered trials and no request was counted.
    """
    steps = Step.objects.filter(RETRY_RELEVANT_STEP, trial__in=trials.order_by().values("pk")).order_by()
    grouped = steps.values("trial__scenario").annotate(
        answers_429=Count("pk", filter=RETRY_CONDITIONS["429"]),
        answers_5xx=Count("pk", filter=RETRY_CONDITIONS["5xx"]),
        retries=Count("pk", filter=RETRY_CONDITIONS["retry"]),
        trials_429=Count("trial", distinct=True, filter=RETRY_CONDITIONS["429"]),
        trials_5xx=Count("trial", distinct=True, filter=RETRY_CONDITIONS["5xx"]),
        trials_retried=Count("trial", distinct=True, filter=RETRY_CONDITIONS["retry"]),
        waited_ms=Sum("backoff_ms"),
        without_status=Count("pk", filter=_LACKS_STATUS),
    )
    rows: dict[str, dict[str, Any]] = {row["trial__scenario"]: dict(row) for row in grouped}
    names = ("answers_429", "answers_5xx", "retries", "trials_429", "trials_5xx", "trials_retried")
    sent = trials.order_by().values("scenario").annotate(sent=Sum("requests"), answered=Count("pk", filter=ANSWERED))
    counts_by_scenario: dict[str, RetryCounts] = {}
    for scenario_row in sent:
        row = rows.get(scenario_row["scenario"], {})
        counts_by_scenario[scenario_row["scenario"]] = RetryCounts(
            **{name: row.get(name, 0) for name in names},
            backoff_ms=row.get("waited_ms") or 0.0,
            retries_known=not row.get("without_status") and bool(scenario_row["sent"] or not scenario_row["answered"]),
        )
    return counts_by_scenario


def build_retry_counts(tally: Tally) -> RetryCounts:
    """Build the counts of the trials of a tally."""
    return RetryCounts(**{field.name: getattr(tally, field.name) for field in fields(RetryCounts)})
