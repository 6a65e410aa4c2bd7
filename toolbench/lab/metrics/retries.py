"""Answers of 429 and 5xx, retries and back-off, counted over the stored steps of every execution of a trial.

A rate limit or a server error may also stand in an answer of 200; its error code then says so, and it counts too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from django.db.models import Aggregate, Case, Count, Exists, OuterRef, Q, QuerySet, Subquery, Sum, When
from django.db.models.functions import Coalesce

from toolbench.lab.models import Step, Trial
from toolbench.lab.models.trials import RETRY_RELEVANT_STEP
from toolbench.lab.sql import load_statement

_RATE_LIMITED = ("rate_limited",)  # of providers/data/outcomes.json
_SERVER_FAILED = ("server_error", "bad_gateway", "unavailable", "gateway_timeout", "overloaded", "server_failed")


def _render_codes(codes: tuple[str, ...]) -> str:
    return ", ".join(f"'{code}'" for code in codes)


_IS_429 = f"(step.status = 429 OR step.error_code IN ({_render_codes(_RATE_LIMITED)}))"
_IS_5XX = f"(step.status BETWEEN 500 AND 599 OR step.error_code IN ({_render_codes(_SERVER_FAILED)}))"
_WITHOUT_STATUS = "(step.status IS NULL AND (step.ok IS NOT FALSE OR step.error_code = 'logged_error'))"

# The same in the words of the ORM: which steps a trial must have for a value of the filter `had`.
RETRY_CONDITIONS: Mapping[str, Q] = {
    "429": Q(status=429) | Q(error_code__in=_RATE_LIMITED),
    "5xx": Q(status__range=(500, 599)) | Q(error_code__in=_SERVER_FAILED),
    "retry": Q(attempt__gt=1),
}
_UNREADABLE = Q(status=None) & (Q(ok=True) | Q(ok=None) | Q(error_code="logged_error"))
_ANSWERED = Q(outcome="pass") | (Q(outcome="fail") & ~Q(end="DEADLINE_EXCEEDED"))  # as `answered` of a tally

RETRY_COUNTS_SQL = load_statement(
    "metrics/retry_counts", is_429=_IS_429, is_5xx=_IS_5XX, without_status=_WITHOUT_STATUS
)

TRIAL_RETRY_COLUMNS = ("answers_429", "answers_5xx", "retries_all", "backoff_ms_all")  # of a trial, over all executions


@dataclass(frozen=True, slots=True)
class RetryCounts:
    """Answers of 429 and 5xx, retries and back-off; unknown where `retries_known` is false.

    Attributes:
        trials_429, trials_5xx: trials with such an answer.
        trials_retried: trials in which a request was sent again.
        backoff_ms: waited before requests that were sent again.
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


def filter_by_retries(trials: QuerySet[Trial], had: str) -> QuerySet[Trial]:
    """Return the trials with an answer or a retry of this kind, in any execution.

    `had` is a key of RETRY_CONDITIONS, or "" for all trials.
    """
    if not had:
        return trials
    return trials.filter(Exists(Step.objects.filter(RETRY_RELEVANT_STEP & RETRY_CONDITIONS[had], trial=OuterRef("pk"))))


def annotate_retry_counts(trials: QuerySet[Trial]) -> QuerySet[Trial]:
    """Add the columns TRIAL_RETRY_COLUMNS to these trials, over all executions; None where they are not known."""
    noted = Step.objects.filter(RETRY_RELEVANT_STEP, trial=OuterRef("pk")).order_by()
    unknown = Exists(noted.filter(_UNREADABLE)) | Q(requests=0, outcome__in=("pass", "fail"))
    found: dict[str, Aggregate] = {
        "answers_429": Count("pk", filter=RETRY_CONDITIONS["429"]),
        "answers_5xx": Count("pk", filter=RETRY_CONDITIONS["5xx"]),
        "retries_all": Count("pk", filter=RETRY_CONDITIONS["retry"]),
        "backoff_ms_all": Sum("backoff_ms"),
    }
    return trials.annotate(
        **{
            name: Case(
                When(unknown, then=None),
                default=Coalesce(Subquery(noted.values("trial").annotate(found=figure).values("found")), zero),
            )
            for (name, figure), zero in zip(found.items(), (0, 0, 0, 0.0), strict=True)
        }
    )


def count_retries(trials: QuerySet[Trial]) -> Mapping[str, RetryCounts]:
    """Return the counts of these trials by scenario, with two queries.

    As in a tally of cells, they are unknown where a step lacks its status, or where answered trials of a scenario have
    no counted request.
    """
    steps = Step.objects.filter(RETRY_RELEVANT_STEP, trial__in=trials.order_by().values("pk")).order_by()
    grouped = steps.values("trial__scenario").annotate(
        answers_429=Count("pk", filter=RETRY_CONDITIONS["429"]),
        answers_5xx=Count("pk", filter=RETRY_CONDITIONS["5xx"]),
        retries=Count("pk", filter=RETRY_CONDITIONS["retry"]),
        trials_429=Count("trial", distinct=True, filter=RETRY_CONDITIONS["429"]),
        trials_5xx=Count("trial", distinct=True, filter=RETRY_CONDITIONS["5xx"]),
        trials_retried=Count("trial", distinct=True, filter=RETRY_CONDITIONS["retry"]),
        waited=Sum("backoff_ms"),
        unread=Count("pk", filter=_UNREADABLE),
    )
    rows: dict[str, dict[str, Any]] = {row["trial__scenario"]: dict(row) for row in grouped}
    names = ("answers_429", "answers_5xx", "retries", "trials_429", "trials_5xx", "trials_retried")
    sent = trials.order_by().values("scenario").annotate(sent=Sum("requests"), answered=Count("pk", filter=_ANSWERED))
    found: dict[str, RetryCounts] = {}
    for about in sent:
        row = rows.get(about["scenario"], {})
        counts = {name: row.get(name, 0) for name in names}
        known = not row.get("unread") and bool(about["sent"] or not about["answered"])
        found[about["scenario"]] = RetryCounts(**counts, backoff_ms=row.get("waited") or 0.0, retries_known=known)
    return found
