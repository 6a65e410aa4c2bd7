"""Diagnosis of one canonical model at two providers: whether model or provider explains the failures."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count

from toolbench.evals.causes.table import load_class_presets
from toolbench.evals.judging.failure_classes import load_classes
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.models import Cell, Preset, RunConfig, Trial
from toolbench.lab.results.compare.comparison import Comparison
from toolbench.lab.results.compare.matching import StrataByKey
from toolbench.lab.results.compare.plan_query import build_launch_query
from toolbench.lab.results.compare.statistics import RateComparison

MAX_WEAK_SHARE = 0.9  # if the intervals of both sides lie below, the model itself is weak


@dataclass(frozen=True, slots=True)
class SuggestedPreset:
    """Preset that may fix failures of the worse side: those of the most frequent class that has a preset.

    Attributes:
        preset: name of the preset.
        reason: the sentence of that failure class.
        query: query string that prefills the launch form with the preset.
    """

    preset: str
    description: str
    reason: str
    query: str


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """A metric in which the providers differ significantly.

    Attributes:
        label: label of the metric.
        first: its rate at the worse provider, or on the first side if neither provider is worse in all differences.
        second: its rate on the other side.
    """

    label: str
    first: Rate
    second: Rate


@dataclass(frozen=True, slots=True)
class FailureClassCount:
    """Number of failed trials of a failure class, with the sentence of the class."""

    failure_class: str
    sentence: str
    count: int


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Diagnosis of a canonical model at two providers.

    Attributes:
        explanation: what explains the failures: "provider" if the providers differ significantly, "model" if the
            success of both is low, else "open".
        worse_provider: names of the providers of the worse side; "" unless one side is worse in all differences.
        better_provider: names of the providers of the other side; "" if `worse_provider` is "".
        differences: significant differences, success first.
        failures: at most three failure classes of the worse side, or of both sides if neither is worse, the most
            frequent first.
    """

    canonical: str
    explanation: str
    worse_provider: str
    better_provider: str
    differences: tuple[MetricDifference, ...]
    failures: tuple[FailureClassCount, ...]
    suggested_preset: SuggestedPreset | None


def diagnose(comparison: Comparison) -> Diagnosis | None:
    """Return the diagnosis, with at most four queries.

    Returns:
        None unless both sides are the same canonical model at different providers.
    """
    first, second = comparison.sides
    models = first.canonical_models
    if "provider" not in comparison.counts.differing or len(models) != 1 or models != second.canonical_models:
        return None
    rates = [
        ("Success", comparison.whole),
        *((call.metric.label, call.compared) for call in comparison.secondary.calls),
    ]
    differing = [(label, rate) for label, rate in rates if rate.differs and rate.difference]
    worse_side = _find_worse_side([rate for _, rate in differing])
    names = [_join_provider_names(strata) for strata in (comparison.counts.first, comparison.counts.second)]
    failures = _count_failures(comparison, worse_side)
    return Diagnosis(
        canonical=models[0],
        explanation="provider" if differing else "model" if _is_weak(comparison.whole) else "open",
        worse_provider="" if worse_side is None else names[worse_side],
        better_provider="" if worse_side is None else names[1 - worse_side],
        differences=tuple(_build_difference(label, rate, worse_side) for label, rate in differing),
        failures=failures,
        suggested_preset=None if worse_side is None else _find_suggested_preset(comparison, worse_side, failures),
    )


def _find_worse_side(differing: Sequence[RateComparison]) -> int | None:
    """Return the index of the side that is worse in all these differences; None if there is no such side."""
    improves = {rate.improves for rate in differing}
    if len(improves) != 1:
        return None
    return 0 if improves.pop() else 1


def _build_difference(label: str, rate: RateComparison, worse_side: int | None) -> MetricDifference:
    rates = (rate.second, rate.first) if worse_side == 1 else (rate.first, rate.second)
    return MetricDifference(label, *rates)


def _join_provider_names(side: StrataByKey) -> str:
    return ", ".join(sorted({str(stratum.settings["provider"]) for strata in side.values() for stratum in strata}))


def _is_weak(whole: RateComparison) -> bool:
    """Return whether success is low on both sides; False if repeated answers leave no valid interval."""
    return bool(whole.first.n) and not whole.withheld and max(whole.first.high, whole.second.high) < MAX_WEAK_SHARE


def _count_failures(comparison: Comparison, worse_side: int | None) -> tuple[FailureClassCount, ...]:
    """Return at most three failure classes, the most frequent first.

    Those of the worse side are counted, or those of both sides if `worse_side` is None.
    """
    counts: Counter[str] = Counter()
    for trials in comparison.trials if worse_side is None else [comparison.trials[worse_side]]:
        classified = trials.filter(outcome=Trial.Outcome.FAIL).exclude(failure_class="").values_list("failure_class")
        counts.update(dict(classified.annotate(count=Count("pk"))))
    sentences = {row.code: row.sentence for row in load_classes()}
    most_frequent = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    return tuple(FailureClassCount(name, sentences.get(name, name), count) for name, count in most_frequent)


def _find_suggested_preset(
    comparison: Comparison, worse_side: int, failures: Sequence[FailureClassCount]
) -> SuggestedPreset | None:
    """Return the preset for the first failure class that has one.

    Args:
        comparison: the comparison.
        worse_side: index of the worse side.
        failures: failure classes of that side, the most frequent first.

    Returns:
        None if no class has a preset, the preset was deleted, or the models of the side were deleted.
    """
    preset_names = load_class_presets()
    failure = next((failure for failure in failures if preset_names.get(failure.failure_class)), None)
    if failure is None:
        return None
    preset = Preset.objects.filter(name=preset_names[failure.failure_class]).first()
    config_ids = comparison.sides[worse_side].config_ids
    configs = list(RunConfig.objects.filter(pk__in=config_ids, model__isnull=False).select_related("run"))
    if preset is None or not configs:
        return None
    cells = Cell.objects.filter(config__in=configs).order_by("scenario").values_list("scenario", flat=True).distinct()
    query = build_launch_query(configs, [preset.name], cells, configs[0].run.trials_per_cell)
    return SuggestedPreset(preset.name, preset.description, failure.sentence, query)
