"""What stands beside success: how calls were made on both sides, and how long trials took."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db.models import QuerySet

from toolbench.evals.statistics.many import holm
from toolbench.evals.statistics.quantiles import Shift, quantile_shift
from toolbench.lab.comparisons.compare_counts import Compared, Counts, stratified
from toolbench.lab.comparisons.compare_sides import VIOLATIONS
from toolbench.lab.counts.cells import ANSWERED
from toolbench.lab.counts.metrics import METRICS, Metric
from toolbench.lab.models import Trial

GOOD = ("structured", "schema", "arguments")  # the more the better
QUANTILES = (("p50", 0.5), ("p95", 0.95))
MOST_TIMES = 1_000  # of each side, the newest


@dataclass(frozen=True, slots=True)
class CallRate:
    """`compared.p` is corrected: of a good rate together with the other good ones and success, of a kind of violation
    together with the other kinds."""

    metric: Metric
    compared: Compared


@dataclass(frozen=True, slots=True)
class TimeShift:
    """`shift` is None where a side has no answer."""

    name: str
    shift: Shift | None


def call_rates(counts: Counts, success: Compared) -> tuple[CallRate, ...]:
    """Calls of one trial hang together: each trial is a cluster."""
    good = [stratified(replace(counts, metric=name), counts.keys) for name in GOOD]
    bad = [stratified(replace(counts, metric=name), counts.keys) for name in VIOLATIONS]
    both = (*corrected([*good, success])[:-1], *(replace(one, fewer=True) for one in corrected(bad)))
    return tuple(CallRate(METRICS[name], one) for name, one in zip((*GOOD, *VIOLATIONS), both, strict=True))


def corrected(found: Sequence[Compared]) -> list[Compared]:
    """The same, the p-values of those that were tested corrected together."""
    tested = [place for place, one in enumerate(found) if one.p is not None]
    values = dict(zip(tested, holm([found[place].p or 0.0 for place in tested]), strict=True))
    return [replace(one, p=values.get(place)) for place, one in enumerate(found)]


def shifts(first: QuerySet[Trial], second: QuerySet[Trial]) -> tuple[TimeShift, ...]:
    """Trial without queue, answered ones only."""
    before, after = _times(first), _times(second)
    return tuple(TimeShift(name, quantile_shift(before, after, q)) for name, q in QUANTILES)


def _times(trials: QuerySet[Trial]) -> list[float]:
    found = trials.filter(ANSWERED).exclude(duration_ms=None).order_by("-pk")
    return [time for time in found.values_list("duration_ms", flat=True)[:MOST_TIMES] if time is not None]
