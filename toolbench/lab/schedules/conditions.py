"""Conditions of alert rules: what each kind looks at in a run that ended, and the sentence that it says."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from toolbench.evals.statistics.rounding import format_rounded
from toolbench.lab.metrics.tally import Tally, tally_cells
from toolbench.lab.models import AlertRule, Run, Trial
from toolbench.lab.schedules.series import RunSeries, SeriesPoint

Kind = AlertRule.Kind
MIN_ANSWERS_COMPARED = 5


@dataclass(frozen=True, slots=True)
class ConditionFinding:
    """A condition that holds for a run; `series` is "" if it is about the whole run."""

    series: str
    sentence: str


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that ended, with the series of its schedule.

    Attributes:
        series: empty without a schedule.
    """

    run: Run
    series: tuple[RunSeries, ...]

    def iter_points(self) -> Iterator[tuple[RunSeries, SeriesPoint]]:
        """Yield each series that the run belongs to, with its point."""
        for series in self.series:
            for point in series.points:
                if point.run.pk == self.run.pk:
                    yield series, point

    @property
    def tally(self) -> Tally:
        """Counts of all cells."""
        return tally_cells(self.run.cells.all())


@dataclass(frozen=True, slots=True)
class ConditionKind:
    """A kind of condition.

    Attributes:
        find: returns what holds for a run, given the rule's threshold.
        fires_when: the condition in words, with {} for the threshold.
        unit: of the threshold; "" for none.
        default: threshold that the form proposes.
        most: largest threshold.
        needs_schedule: whether it compares runs of a schedule.
    """

    find: Callable[[EndedRun, float], Iterator[ConditionFinding]]
    fires_when: str
    unit: str = ""
    default: float = 0
    most: float = 0
    needs_schedule: bool = True


def find_conditions(rule: AlertRule, ended: EndedRun) -> list[ConditionFinding]:
    """Return the conditions of the rule that hold for the run."""
    return list(CONDITIONS[Kind(rule.kind)].find(ended, rule.threshold or 0))


def describe_rule(rule: AlertRule) -> str:
    """Return when the rule fires, in words."""
    kind = CONDITIONS[Kind(rule.kind)]
    return kind.fires_when.format(f"{rule.threshold or 0:g}")


def _find_drop(ended: EndedRun, threshold: float) -> Iterator[ConditionFinding]:
    for series, _ in ended.iter_points():
        drift = series.drift
        if drift and drift.points < 0 and series.since[drift.detected].run.pk <= ended.run.pk:
            start = series.since[drift.begins].run
            dropped = format_rounded(-drift.points)
            yield ConditionFinding(
                series.key, f"{series.label}: success dropped by {dropped} points, since run {start.pk}."
            )


def _find_below_target(ended: EndedRun, threshold: float) -> Iterator[ConditionFinding]:
    for series, point in ended.iter_points():
        rate = point.tally.answered_success(threshold)
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
        yield ConditionFinding("", f"It cost ${cost:,.2f}, more than ${threshold:,.2f}.")


def _find_changed_answers(ended: EndedRun, threshold: float) -> Iterator[ConditionFinding]:
    for series, point in ended.iter_points():
        shares = _compare_answers(series, point)
        if shares and 100 * shares[0] < threshold * shares[1]:
            now, before = (format_rounded(100 * share) for share in shares)
            sentence = f"{now} % of the answers are known from the baseline; within the baseline it was {before} %."
            yield ConditionFinding(series.key, f"{series.label}: {sentence}")


def _compare_answers(series: RunSeries, point: SeriesPoint) -> tuple[float, float] | None:
    """Return the share of answers that occur in the baseline, and the share of its own that occur in it twice.

    Without enough answers, or if no answer of the baseline occurs twice, it is None.
    """
    pinned = [found.run.pk for found in series.baseline if found.run.pk != point.run.pk]
    known = Counter(_list_answers(series, pinned))
    answers = list(_list_answers(series, [point.run.pk]))
    repeated = sum(count for count in known.values() if count > 1)
    if min(len(answers), known.total()) < MIN_ANSWERS_COMPARED or not repeated:
        return None
    return sum(answer in known for answer in answers) / len(answers), repeated / known.total()


def _list_answers(series: RunSeries, run_ids: list[int]) -> Iterator[tuple[str, str]]:
    """Yield scenario and answer of each answered trial of the series in these runs."""
    configs = {point.config_id for point in series.points if point.run.pk in run_ids}
    trials = Trial.objects.filter(config__in=configs, outcome__in=[Trial.Outcome.PASS, Trial.Outcome.FAIL])
    yield from trials.exclude(answer_hash="").values_list("scenario", "answer_hash")


def _find_end(ended: EndedRun, threshold: float) -> Iterator[ConditionFinding]:
    tally = ended.tally
    counts = f"{tally.passed:,} of {tally.tried:,} trials passed, {tally.infra:,} infrastructure errors"
    yield ConditionFinding("", f"The run is {ended.run.get_state_display()}: {counts}.")


CONDITIONS: Mapping[Kind, ConditionKind] = {
    Kind.DRIFT: ConditionKind(_find_drop, "the drift test finds a drop since the baseline"),
    Kind.BELOW_TARGET: ConditionKind(
        _find_below_target, "the whole interval of a run is below {} %", unit="%", default=90, most=100
    ),
    Kind.SLOW: ConditionKind(_find_slow, "the lower bound of p95 is above {} s", unit="s", default=30, most=86_400),
    Kind.INFRASTRUCTURE: ConditionKind(
        _find_infrastructure,
        "more than {} % of a run are infrastructure errors",
        unit="%",
        default=5,
        most=100,
        needs_schedule=False,
    ),
    Kind.SPEND: ConditionKind(
        _find_spend, "a run costs more than {} dollars", unit="$", default=5, most=1_000_000, needs_schedule=False
    ),
    Kind.ANSWERS_CHANGED: ConditionKind(
        _find_changed_answers,
        "the share of known answers falls below {} % of that in the baseline",
        unit="%",
        default=50,
        most=100,
    ),
    Kind.RUN_ENDED: ConditionKind(_find_end, "a run finishes or is cancelled", needs_schedule=False),
}
