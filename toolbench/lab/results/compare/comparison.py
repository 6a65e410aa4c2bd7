"""Comparison of two sides: their rates, the difference between them, and what explains it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from django.db.models import Q, QuerySet

from toolbench.evals.statistics.power import compute_aa_noise, count_trials_to_detect
from toolbench.lab.metrics.retries import RetryCounts
from toolbench.lab.models import Trial
from toolbench.lab.results.compare.matching import ComparisonCounts, match_sides
from toolbench.lab.results.compare.query import AXES, SUCCESS_METRICS, CompareQuery
from toolbench.lab.results.compare.secondary_metrics import SecondaryMetrics, apply_bonferroni, get_secondary_metrics
from toolbench.lab.results.compare.sides import Side, filter_side_trials, read_side
from toolbench.lab.results.compare.statistics import (
    OutcomeChanges,
    RateComparison,
    choose_and_compare,
    compare_strata,
)
from toolbench.lab.results.compare.strata import STRATUM_FIELDS, StratumCounts, collect_cell_ids, read_strata
from toolbench.lab.results.compare.warnings import list_warnings
from toolbench.lab.results.run_differences import describe_run_differences, find_run_differences

RUN_SPECIFIC_AXES = {"run", "config", "day", "upstream"}  # axes whose values need not occur in another run
NAMED_FIELDS = {"examples", "tool use", "prompt", "version"}  # labels show the name of the field before the value
# Axes whose values are names or dates, which a side's name shows alone. Other values follow the name of their axis.
_NAME_AXES = {"provider", "model", "canonical", "profile", "strategy", "method", "upstream", "day"}


@dataclass(frozen=True, slots=True)
class StratumRow:
    """Comparison in one stratum that both sides have.

    Attributes:
        label: values of the settings in which the rows of the comparison differ, and the scenario versions of the
            sides if these have none in common; "" without both.
    """

    scenario: str
    label: str
    compared: RateComparison


@dataclass(frozen=True, slots=True)
class RequiredTrials:
    """Trials needed to detect a difference of `points` percentage points.

    Attributes:
        trials: number of trials on each side.
        more: number of trials that the side with fewer trials lacks; 0 for none.
    """

    points: int
    trials: int
    more: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of two sides.

    Attributes:
        names: names of all sides of the query.
        sides: figures of both sides.
        counts: counts of both sides.
        how: "paired" or "stratified".
        whole: comparison of all strata; it is not corrected for other comparisons.
        rows: comparisons by stratum, corrected for their number.
        outcome_changes: numbers of instances by change of outcome.
        required_trials: trials needed to detect a difference of `query.points`.
        noise: difference, as a fraction, that equal sides of this size exceed in 5 of 100 comparisons.
        secondary: the secondary metrics, corrected for their number.
        shared_trials: number of trials that are on both sides. If it is not 0, the sides are not comparable, and the
            differences have no meaning.
        trials: the trials of the strata that both sides have, by side; without such strata, all trials of the scenario
            group and instance kind.
    """

    query: CompareQuery
    names: tuple[str, ...]
    sides: tuple[Side, Side]
    counts: ComparisonCounts
    how: str
    whole: RateComparison
    rows: tuple[StratumRow, ...]
    outcome_changes: OutcomeChanges
    required_trials: RequiredTrials
    noise: float
    secondary: SecondaryMetrics
    warnings: tuple[str, ...]
    shared_trials: int
    trials: tuple[QuerySet[Trial], QuerySet[Trial]]

    @property
    def retries(self) -> tuple[tuple[str, RetryCounts, RetryCounts], ...]:
        """Return the retry counts of both sides as (scenario, first, second).

        The first entry, with an empty scenario, is for all trials. If there are several scenarios, one entry for each
        follows.
        """
        first, second = self.sides
        parts = (first.retries_by_scenario, second.retries_by_scenario)
        names = sorted({*parts[0], *parts[1]})
        split = ((name, *(part.get(name, RetryCounts()) for part in parts)) for name in names)
        return (("", first.retries, second.retries), *(split if len(names) > 1 else ()))

    @property
    def title(self) -> str:
        """Return "second side against first side", with a capital unless it begins with an identifier."""
        title = f"{self.names[1]} against {self.names[0]}"
        first_axis = next(iter(self.query.side_values[1] or self.query.sides[1]), "")
        return title if first_axis in _NAME_AXES else f"{title[0].upper()}{title[1:]}"

    @property
    def metric(self) -> str:
        """Return the label of the success metric that is compared."""
        return SUCCESS_METRICS[self.query.metric]

    @property
    def comparable(self) -> bool:
        """Return whether the sides have a stratum in common and no trial."""
        return bool(self.counts.keys) and not self.shared_trials

    @property
    def has_equal_settings(self) -> bool:
        """Return whether all settings of the sides are equal, so that this is an A/A comparison."""
        return not self.counts.differing and self.sides[0].policy_hashes == self.sides[1].policy_hashes


def get_comparison(query: CompareQuery, strata: Sequence[Sequence[StratumCounts]] | None = None) -> Comparison:
    """Return the comparison of the first two sides.

    The function sends at most 18 SQL queries, whatever the number of trials.

    Args:
        query: the sides.
        strata: counts of the sides; None reads them.
    """
    side_trials = [filter_side_trials(side, demo=query.demo, chosen=query.chosen) for side in query.sides[:2]]
    strata = strata or read_strata(side_trials)
    shared = count_shared_trials(side_trials, strata)
    counts = match_sides(strata[0], strata[1], metric=query.metric, group=query.group, kind=query.kind)
    trials = _filter_shared_strata(counts, side_trials)
    first, second = map(read_side, trials, map(collect_cell_ids, _list_counted_strata(counts)))
    whole, how, changes = choose_and_compare(counts, how=query.how)
    return Comparison(
        query=query,
        names=build_side_names(query),
        sides=(first, second),
        counts=counts,
        how=how,
        whole=whole,
        rows=_build_rows(counts, how),
        outcome_changes=changes,
        required_trials=compute_required_trials(whole, query.points),
        noise=compute_aa_noise(_compute_share(whole), whole.first.n, whole.second.n),
        secondary=get_secondary_metrics(counts, (first, second), trials),
        warnings=(*_describe_run_differences(counts, query.metric), *list_warnings(first, second, counts)),
        shared_trials=shared,
        trials=trials,
    )


def count_shared_trials(sides: Sequence[QuerySet[Trial]], strata: Sequence[Sequence[StratumCounts]]) -> int:
    """Return how many trials are on both sides.

    The function sends one SQL query if the sides have a cell in common, else none.

    Args:
        sides: the trials of both sides.
        strata: the counts of both sides.
    """
    first, second = map(collect_cell_ids, strata)
    return 0 if first.isdisjoint(second) else (sides[0] & sides[1]).count()


def _describe_run_differences(counts: ComparisonCounts, metric: str) -> tuple[str, ...]:
    sides = [collect_cell_ids(strata) for strata in _list_shared_strata(counts)]
    return describe_run_differences(find_run_differences(sides, metric))


def _filter_shared_strata(
    counts: ComparisonCounts, sides: Sequence[QuerySet[Trial]]
) -> tuple[QuerySet[Trial], QuerySet[Trial]]:
    """Return the trials of each side in the strata that both sides have.

    If there is no such stratum, all trials of the scenario group and instance kind are returned.
    """
    first, second = (side.filter(cell__scenario_group=counts.group, instance_kind=counts.kind) for side in sides)
    if not counts.keys:
        return first, second
    first_condition, second_condition = map(_build_trial_condition, _list_shared_strata(counts))
    return first.filter(first_condition), second.filter(second_condition)


def _list_shared_strata(counts: ComparisonCounts) -> tuple[list[StratumCounts], list[StratumCounts]]:
    """Return the counts of each side in the strata that both sides have."""
    first, second = (
        [stratum for key in counts.keys for stratum in side[key]] for side in (counts.first, counts.second)
    )
    return first, second


def _list_counted_strata(counts: ComparisonCounts) -> tuple[list[StratumCounts], list[StratumCounts]]:
    """Return the counts of the shared strata; if there is none, those of all strata that are compared."""
    if counts.keys:
        return _list_shared_strata(counts)
    first, second = (list(chain.from_iterable(side.values())) for side in (counts.first, counts.second))
    return first, second


def _build_trial_condition(strata: Iterable[StratumCounts]) -> Q:
    """Return the condition of the trials that these strata count.

    The condition names prompt versions, since a cell may contain trials of several.
    """
    ids_by_version: dict[tuple[object, object], set[int]] = defaultdict(set)
    for stratum in strata:
        ids_by_version[stratum.settings["prompt"], stratum.settings["version"]] |= stratum.cell_ids
    parts = (
        Q(prompt_version=prompt, scenario_version=version, cell_id__in=cell_ids)
        for (prompt, version), cell_ids in ids_by_version.items()
    )
    return Q(*parts, _connector=Q.OR)


def compare_runs(first: int, second: int, query: CompareQuery) -> RateComparison:
    """Compare two runs.

    Args:
        first: primary key of the first run.
        second: primary key of the second run.
        query: the values and the filter that hold for all its sides select the trials of both runs, except for
            RUN_SPECIFIC_AXES, the dates and `upto`. The values of single sides are ignored.
    """
    axes = {name: value for name, value in query.both.items() if name not in RUN_SPECIFIC_AXES}
    chosen = replace(query.chosen, after=None, before=None, upto=None)
    runs = ({**axes, "run": str(run)} for run in (first, second))
    strata = read_strata([filter_side_trials(run, demo=query.demo, chosen=chosen) for run in runs])
    counts = match_sides(strata[0], strata[1], metric=query.metric, group=query.group, kind=query.kind)
    return choose_and_compare(counts)[0]


def _build_rows(counts: ComparisonCounts, how: str) -> tuple[StratumRow, ...]:
    """Return one row for each stratum, the smallest p-value first, then rows without one.

    The intervals are simultaneous.
    """
    comparisons = apply_bonferroni([compare_strata(counts, [key], how) for key in counts.keys])
    labels = _build_labels(counts)
    rows = (
        StratumRow(str(key[0]), label, comparison)
        for key, label, comparison in zip(counts.keys, labels, comparisons, strict=True)
    )
    return tuple(sorted(rows, key=lambda row: (row.compared.p if row.compared.p is not None else 2, row.scenario)))


def _build_labels(counts: ComparisonCounts) -> list[str]:
    """Return a label for each stratum: its values of the settings in which the strata differ.

    If the sides have no scenario version in common, the label names the versions of both.
    """
    shared = enumerate((name for name in STRATUM_FIELDS if name not in counts.differing), start=1)
    varying = [(position, name) for position, name in shared if len({key[position] for key in counts.keys}) > 1]
    parts = [
        [_describe_value(name, key[position]) for position, name in varying if key[position] != ""]
        for key in counts.keys
    ]
    if "version" in counts.differing:
        pairs = (
            (counts.first[key][0].settings["version"], counts.second[key][0].settings["version"]) for key in counts.keys
        )
        parts = [
            [*stratum_parts, f"version {first} and {second}"]
            for stratum_parts, (first, second) in zip(parts, pairs, strict=True)
        ]
    return [" · ".join(stratum_parts) for stratum_parts in parts]


def _describe_value(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "streamed" if value else "whole"
    return f"{name} {value}" if name in NAMED_FIELDS else str(value)


def _compute_share(whole: RateComparison) -> float:
    """Return the share of successes on both sides together; without trials, 0.9 is assumed."""
    tried = whole.first.n + whole.second.n
    return (whole.first.k + whole.second.k) / tried if tried else 0.9


def compute_required_trials(whole: RateComparison, points: int) -> RequiredTrials:
    """Return the trials needed to detect a difference of `points` percentage points.

    The share of successes on both sides together is taken as the success of the first side.
    """
    trials = count_trials_to_detect(points / 100, share=_compute_share(whole))
    return RequiredTrials(points, trials, max(0, trials - min(whole.first.n, whole.second.n)))


def build_side_names(query: CompareQuery) -> tuple[str, ...]:
    """Return a name for each side, from the values that do not hold for all sides.

    The name of a side without such values consists of all its values; it is "nothing chosen" if there are none.
    """
    return tuple(_describe_axes(values or side) for values, side in zip(query.side_values, query.sides, strict=True))


def _describe_axes(axes: Mapping[str, str]) -> str:
    texts = (value if name in _NAME_AXES else f"{AXES[name].lower()} {value}" for name, value in axes.items())
    return " · ".join(texts) or "nothing chosen"
