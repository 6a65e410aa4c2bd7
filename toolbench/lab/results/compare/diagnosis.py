"""Diagnosis of one canonical model at two providers: provider or model, and which preset may help."""

from collections import Counter
from dataclasses import dataclass

from toolbench.evals.causes.table import load_class_presets
from toolbench.evals.judging.failure_classes import load_classes
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.models import Cell, Preset, RunConfig, Trial
from toolbench.lab.results.compare.comparison import Comparison
from toolbench.lab.results.compare.plan_query import build_launch_query
from toolbench.lab.results.compare.query import SIDES
from toolbench.lab.results.compare.statistics import RateComparison

MAX_WEAK_SHARE = 0.9  # a share whose whole interval lies below this on both sides is the model's own


@dataclass(frozen=True, slots=True)
class SuggestedPreset:
    """A preset for the worse side.

    Attributes:
        because: the sentence of the failure class that the preset may fix.
        query: the query string that fills in the launch form.
    """

    preset: str
    description: str
    because: str
    query: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Diagnosis of a canonical model at two providers.

    Attributes:
        verdict: "provider", "model" or "open".
        worse: name of the worse provider; empty unless one is worse.
        better: name of the better provider; empty unless one is worse.
        failures: the most frequent failures of the worse side, or of both where neither is worse.
    """

    canonical: str
    verdict: str
    worse: str
    better: str
    because: tuple[tuple[str, Rate, Rate], ...]  # what differs, its share at the worse and at the better provider
    failures: tuple[tuple[str, str, int], ...]  # class, sentence, count
    proposal: SuggestedPreset | None


def diagnose(page: Comparison) -> Diagnosis | None:
    """Return the diagnosis, with three more queries.

    Returns:
        None unless both sides are one canonical model at different providers.
    """
    first, second = page.sides
    if "provider" not in page.counts.differing or len(first.canonical) != 1 or first.canonical != second.canonical:
        return None
    comparisons = [("Success", page.whole), *((call.metric.label, call.compared) for call in page.beside.calls)]
    differing = [
        (label, comparison) for label, comparison in comparisons if comparison.differs and comparison.difference
    ]
    falling = [not comparison.improves for _, comparison in differing]
    worse = "" if not falling or any(falling) != all(falling) else "b" if falling[0] else "a"
    names = dict(zip(SIDES, (_join_provider_names(page, 0), _join_provider_names(page, 1)), strict=True))
    verdict = "provider" if differing else "model" if _is_weak(page.whole) else "open"
    failures = _count_failures(page, worse)
    return Diagnosis(
        canonical=first.canonical[0],
        verdict=verdict,
        worse=names.get(worse, ""),
        better=names["a" if worse == "b" else "b"] if worse else "",
        because=tuple((label, *_order_worse_first(comparison, worse)) for label, comparison in differing),
        failures=failures,
        proposal=_find_suggested_preset(page, worse, failures) if worse else None,
    )


def _order_worse_first(comparison: RateComparison, worse: str) -> tuple[Rate, Rate]:
    return (comparison.second, comparison.first) if worse == "b" else (comparison.first, comparison.second)


def _join_provider_names(page: Comparison, side: int) -> str:
    lines = (page.counts.first, page.counts.second)[side]
    return ", ".join(
        sorted({str(line.settings["provider"]) for stratum_lines in lines.values() for line in stratum_lines})
    )


def _is_weak(whole: RateComparison) -> bool:
    return bool(whole.first.n) and max(whole.first.high, whole.second.high) < MAX_WEAK_SHARE


def _count_failures(page: Comparison, worse: str) -> tuple[tuple[str, str, int], ...]:
    """Return the three most frequent failure classes of the compared trials."""
    counts: Counter[str] = Counter()
    for trials in [page.trials[SIDES.index(worse)]] if worse else page.trials:
        counts.update(trials.filter(outcome=Trial.Outcome.FAIL).values_list("failure_class", flat=True))
    sentences = {row.code: row.sentence for row in load_classes()}
    return tuple((name, sentences.get(name, name), count) for name, count in counts.most_common(3) if name)


def _find_suggested_preset(
    page: Comparison, worse: str, failures: tuple[tuple[str, str, int], ...]
) -> SuggestedPreset | None:
    """Return the preset for the most frequent failure that has one."""
    healed = ((load_class_presets().get(name), sentence) for name, sentence, _ in failures)
    preset, because = next(((name, sentence) for name, sentence in healed if name), (None, ""))
    found = Preset.objects.filter(name=preset).first() if preset else None
    side = page.sides[SIDES.index(worse)]
    configs = list(RunConfig.objects.filter(pk__in=side.config_ids, model__isnull=False).select_related("run"))
    if found is None or not configs:
        return None
    cells = Cell.objects.filter(config__in=configs).order_by("scenario").values_list("scenario", flat=True).distinct()
    query = build_launch_query(configs, [found.name], cells, configs[0].run.trials_per_cell)
    return SuggestedPreset(found.name, found.description, because, query)
