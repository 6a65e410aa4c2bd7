"""Conditions of alert rules: each kind examines an ended run and yields findings, each with a sentence."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from django.db.models import Count, Q, Sum

from toolbench.evals.statistics.rounding import format_rounded
from toolbench.lab.metrics.tally import Tally, tally_cells
from toolbench.lab.models import AlertRule, Run, Trial
from toolbench.lab.schedules.series import RunSeries, SeriesPoint

Kind = AlertRule.Kind
MIN_ANSWERS_COMPARED = 5  # of the run, and of the baseline


@dataclass(frozen=True, slots=True)
class ConditionFinding:
    """Condition that holds for a run.

    Attributes:
        series: key of the series; empty if the condition is about the whole run.
        sentence: explanation for the user.
    """

    series: str
    sentence: str


@dataclass(frozen=True, slots=True)
class EndedRun:
    """Ended run with the series of its schedule.

    Attributes:
        series: the series of the run's schedule; empty if the run has no schedule.
    """

    run: Run
    series: tuple[RunSeries, ...]

    def iter_points(self) -> Iterator[tuple[RunSeries, SeriesPoint]]:
        """Yield each series that contains the run, with the point of the run."""
        for series in self.series:
            for point in series.points:
                if point.run.pk == self.run.pk:
                    yield series, point

    @property
    def tally(self) -> Tally:
        """Counts of all cells of the run."""
        return tally_cells(self.run.cells.all())


@dataclass(frozen=True, slots=True)
class ConditionKind:
    """Kind of condition.

    Attributes:
        find: yields the findings for a run and the threshold of the rule, which is 0 for a kind without a threshold.
        fires_when: the condition in words, with {} for the threshold.
        unit: unit of the threshold; empty for a kind without a threshold.
        default: threshold that the form proposes; 0 for a kind without a threshold.
        maximum: largest threshold; 0 for a kind without a threshold.
        needs_schedule: whether the condition is about the series of a schedule.
    """

    find: Callable[[EndedRun, float], Iterator[ConditionFinding]]
    fires_when: str
    unit: str = ""
    default: float = 0
    maximum: float = 0
    needs_schedule: bool = True


def find_conditions(rule: AlertRule, ended: EndedRun) -> list[ConditionFinding]:
    """Return what the condition of the rule finds in the run; empty if it does not hold."""
    return list(CONDITIONS[Kind(rule.kind)].find(ended, rule.threshold or 0))


def describe_rule(rule: AlertRule) -> str:
    """Describe when the rule fires, as the end of a sentence."""
    kind = CONDITIONS[Kind(rule.kind)]
    return kind.fires_when.format(f"{rule.threshold or 0:,.10g}")


def describe_end(run: Run) -> str:
    """Describe the state of an ended run, as the beginning of a sentence."""
    return f"The run is {run.get_state_display()}:"


def _find_drop(ended: EndedRun, threshold: float) -> Iterator[ConditionFinding]:
    for series, _ in ended.iter_points():
        drift = series.drift
        if drift and drift.points < 0 and series.since[drift.detected_index].run.pk <= ended.run.pk:
            start = series.since[drift.start_index].run
            dropped = format_rounded(-drift.points)
            yield ConditionFinding(
                series.key, f"{series.label}: success dropped by {dropped} points, since run {start.pk}."
            )


def _find_below_target(ended: EndedRun, threshold: float) -> Iterator[ConditionFinding]:
    for series, point in ended.iter_points():
        rate = point.tally.compute_answered_success(threshold)
        if rate.target_status == "below":
            yield ConditionFinding(series.key, f"{series.label}: success is below {threshold:g} %: {rate.text}.")


def _find_slow(ended: EndedRun, threshold: float) -> Iterator[ConditionFinding]:
    for series, point in ended.iter_points():
        p95 = point.times.p95
        if p95 and p95.low is not None and p95.low > 1000 * threshold:
            low = format_rounded(p95.low / 1000, 1)
            yield ConditionFinding(
                series.key, f"{series.label}: p95 is above {threshold:g} s: its lower bound is {low} s."
            )


def _find_infrastructure(ended: EndedRun, threshold: float) -> Iterator[ConditionFinding]:
    tally = ended.tally
    if tally.tried and 100 * tally.infra > threshold * tally.tried:
        yield ConditionFinding("", f"{tally.infra:,} of {tally.tried:,} trials ended with an infrastructure error.")


def _find_spend(ended: EndedRun, threshold: float) -> Iterator[ConditionFinding]:
    cost = ended.tally.cost
    if cost is not None and cost > threshold:
        yield ConditionFinding("", f"The run cost ${cost:,.2f}, more than ${threshold:,.2f}.")


def _find_changed_answers(ended: EndedRun, threshold: float) -> Iterator[ConditionFinding]:
    for series, point in ended.iter_points():
        shares = _compare_answers(series, point)
        if shares and 100 * shares[0] < threshold * shares[1]:
            now, before = (format_rounded(100 * share) for share in shares)
            sentence = f"{now} % of the answers also occur in the baseline, where {before} % occur more than once."
            yield ConditionFinding(series.key, f"{series.label}: {sentence}")


def _compare_answers(series: RunSeries, point: SeriesPoint) -> tuple[float, float] | None:
    """Compare the answers of a run with those of the baseline; if the run is in the baseline, it is left out there.

    Returns:
        The share of the run's answers that occur in the baseline, and the share of the baseline's answers that occur in
        it more than once. None if either has fewer than MIN_ANSWERS_COMPARED answers, or no answer of the baseline
        occurs more than once.
    """
    run_config_ids = _list_config_ids(series, {point.run.pk})
    baseline_config_ids = _list_config_ids(series, {pinned.run.pk for pinned in series.baseline} - {point.run.pk})
    answers = Trial.objects.filter(
        config__in=[*run_config_ids, *baseline_config_ids], outcome__in=[Trial.Outcome.PASS, Trial.Outcome.FAIL]
    ).exclude(answer_hash="")
    # Counted by the database, since a baseline may have millions of answers.
    counts = (
        answers.order_by()
        .values("scenario", "answer_hash")
        .annotate(
            in_run=Count("pk", filter=Q(config__in=run_config_ids)),
            in_baseline=Count("pk", filter=Q(config__in=baseline_config_ids)),
        )
    )
    sums = counts.aggregate(
        answers=Sum("in_run", default=0),
        shared=Sum("in_run", filter=Q(in_baseline__gt=0), default=0),
        baseline_answers=Sum("in_baseline", default=0),
        repeated=Sum("in_baseline", filter=Q(in_baseline__gt=1), default=0),
    )
    if min(sums["answers"], sums["baseline_answers"]) < MIN_ANSWERS_COMPARED or not sums["repeated"]:
        return None
    return sums["shared"] / sums["answers"], sums["repeated"] / sums["baseline_answers"]


def _list_config_ids(series: RunSeries, run_ids: Collection[int]) -> list[int]:
    """Return the primary keys of the configurations of the series in these runs."""
    return [point.config_id for point in series.points if point.run.pk in run_ids]


def _find_end(ended: EndedRun, threshold: float) -> Iterator[ConditionFinding]:
    tally = ended.tally
    counts = f"{tally.passed:,} of {tally.tried:,} trials passed, {tally.infra:,} infrastructure errors"
    yield ConditionFinding("", f"{describe_end(ended.run)} {counts}.")


CONDITIONS: Mapping[Kind, ConditionKind] = {
    Kind.DRIFT: ConditionKind(_find_drop, "the drift test finds a drop since the baseline"),
    Kind.BELOW_TARGET: ConditionKind(
        _find_below_target, "the whole interval of a run is below {} %", unit="%", default=90, maximum=100
    ),
    Kind.SLOW: ConditionKind(_find_slow, "the lower bound of p95 is above {} s", unit="s", default=30, maximum=86_400),
    Kind.INFRASTRUCTURE: ConditionKind(
        _find_infrastructure,
        "more than {} % of a run are infrastructure errors",
        unit="%",
        default=5,
        maximum=100,
        needs_schedule=False,
    ),
    Kind.SPEND: ConditionKind(
        _find_spend, "a run costs more than {} dollars", unit="$", default=5, maximum=1_000_000, needs_schedule=False
    ),
    Kind.ANSWERS_CHANGED: ConditionKind(
        _find_changed_answers,
        "the share of answers that also occur in the baseline falls below {} % of the baseline's share of repeated "
        "answers",
        unit="%",
        default=50,
        maximum=100,
    ),
    Kind.RUN_ENDED: ConditionKind(_find_end, "a run finishes or is cancelled", needs_schedule=False),
}
