"""What stands beside success: how calls were made on both sides, and how long trials took."""

from dataclasses import dataclass, replace

from django.db.models import QuerySet

from toolbench.evals.statistics.many import holm
from toolbench.evals.statistics.quantiles import Shift, quantile_shift
from toolbench.lab.cells import ANSWERED
from toolbench.lab.compare_counts import Compared, Counts, stratified
from toolbench.lab.models import Trial

CALLS = {
    "usage": ("Structured-call rate", "structured calls / answers that called"),
    "schema": ("Schema accuracy", "valid calls / calls"),
}
QUANTILES = (("p50", 0.5), ("p95", 0.95))
MOST_TIMES = 1_000  # of each side, the newest


@dataclass(frozen=True, slots=True)
class CallRate:
    """`compared.p` is corrected together with the other rate and with success."""

    name: str
    label: str
    denominator: str
    compared: Compared

    @property
    def violations(self) -> tuple[int, int]:
        """What is missing from all, on each side."""
        return self.compared.first.n - self.compared.first.k, self.compared.second.n - self.compared.second.k


@dataclass(frozen=True, slots=True)
class TimeShift:
    """`shift` is None where there are too few times for that quantile."""

    name: str
    shift: Shift | None


def call_rates(counts: Counts, success: Compared) -> tuple[CallRate, ...]:
    """Calls of one trial hang together: each trial is a cluster."""
    found = {name: stratified(replace(counts, metric=name), counts.keys) for name in CALLS}
    values = [1.0 if one.p is None else one.p for one in (*found.values(), success)]
    return tuple(
        CallRate(name, *CALLS[name], replace(compared, p=p if compared.p is not None else None))
        for (name, compared), p in zip(found.items(), holm(values), strict=False)
    )


def shifts(first: QuerySet[Trial], second: QuerySet[Trial]) -> tuple[TimeShift, ...]:
    """Trial without queue, answered ones only."""
    before, after = _times(first), _times(second)
    return tuple(TimeShift(name, quantile_shift(before, after, q)) for name, q in QUANTILES)


def _times(trials: QuerySet[Trial]) -> list[float]:
    found = trials.filter(ANSWERED).exclude(duration_ms=None).order_by("-pk")
    return [time for time in found.values_list("duration_ms", flat=True)[:MOST_TIMES] if time is not None]
