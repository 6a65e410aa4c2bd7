"""The compare page: two sides chosen in the address, the difference between them and what it may be called."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from toolbench.evals.statistics.power import noise, trials_to_find
from toolbench.lab.metrics.retries import Retries
from toolbench.lab.models import Trial
from toolbench.lab.results.compare.query import AXES, METRICS, SIDES, CompareQuery
from toolbench.lab.results.compare.secondary_metrics import Beside, get_beside, simultaneous
from toolbench.lab.results.compare.sides import IDENTITY, Line, Side, read_lines, read_side, trials_of
from toolbench.lab.results.compare.statistics import (
    Compared,
    Counts,
    Flips,
    Key,
    bring_together,
    flips,
    paired,
    stratified,
    worth_pairing,
)
from toolbench.lab.results.compare.warnings import warnings

OF_ONE_RUN = {"run", "config", "day", "upstream"}
SAID_WITH_NAME = {"examples", "tool use", "prompt", "version"}  # values that say nothing alone


@dataclass(frozen=True, slots=True)
class Row:
    """One stratum that both sides have. `label` tells it from the other rows."""

    scenario: str
    label: str
    compared: Compared


@dataclass(frozen=True, slots=True)
class Needed:
    """What it would take to see a difference of `points`: trials on each side in all, and how many more."""

    points: int
    trials: int
    more: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """`how` is paired or stratified. `whole` answers the question asked, alone; `rows` are one family of comparisons,
    `beside` is another. `noise` is how far apart, as a fraction, equal sides of this size come to lie in
    95 of 100 comparisons. `shared_trials` are on both sides: then nothing is compared. `trials` are those compared."""

    query: CompareQuery
    names: tuple[str, str]
    sides: tuple[Side, Side]
    counts: Counts
    how: str
    whole: Compared
    rows: tuple[Row, ...]
    flips: Flips
    needed: Needed
    noise: float
    beside: Beside
    warnings: tuple[str, ...]
    shared_trials: int
    trials: tuple[QuerySet[Trial], QuerySet[Trial]]

    @property
    def retries(self) -> tuple[tuple[str, Retries, Retries], ...]:
        """Both sides' answers of 429 and 5xx, retries and back-off; by scenario where there are several."""
        first, second = self.sides
        parts = (first.retries_by_scenario, second.retries_by_scenario)
        names = sorted({*parts[0], *parts[1]})
        split = ((name, *(part.get(name, Retries()) for part in parts)) for name in names)
        return (("", first.retries, second.retries), *(split if len(names) > 1 else ()))

    @property
    def metric(self) -> str:
        return METRICS[self.query.metric]

    @property
    def comparable(self) -> bool:
        return bool(self.counts.keys) and not self.shared_trials

    @property
    def equal_setting(self) -> bool:
        """Whether nothing that was asked for differs: an A/A comparison."""
        return not self.counts.differing and self.sides[0].hashes == self.sides[1].hashes


def get_comparison(query: CompareQuery) -> Comparison:
    """Eleven queries, whatever the number of trials."""
    found = [trials_of(query.side(name), demo=query.demo) for name in SIDES]
    shared = (found[0] & found[1]).count()
    counts = _counts(query, found)
    trials = _shared_trials(counts, found)
    first, second = map(read_side, trials)
    fates = flips(counts)
    how = "paired" if query.how != "stratified" and worth_pairing(counts, fates) else "stratified"
    whole = _compared(counts, counts.keys, how)
    return Comparison(
        query=query,
        names=side_names(query),
        sides=(first, second),
        counts=counts,
        how=how,
        whole=whole,
        rows=_rows(counts, how),
        flips=fates,
        needed=needed_for(whole, query.points),
        noise=noise(_share(whole), whole.first.n, whole.second.n),
        beside=get_beside(counts, (first, second), trials),
        warnings=warnings(first, second, counts),
        shared_trials=shared,
        trials=trials,
    )


def _shared_trials(counts: Counts, found: Sequence[QuerySet[Trial]]) -> tuple[QuerySet[Trial], QuerySet[Trial]]:
    """Return the trials of the strata that both sides have, as success counts them; all where they share none."""
    first, second = (side.filter(cell__scenario_group=counts.group, instance_kind=counts.kind) for side in found)
    if not counts.keys:
        return first, second
    lines = ([line for key in counts.keys for line in side[key]] for side in (counts.first, counts.second))
    before, after = map(_counted_in, lines)
    return first.filter(before), second.filter(after)


def _counted_in(lines: Iterable[Line]) -> Q:
    """Return the condition of the trials that these lines count. A cell may hold trials of several prompt versions."""
    cells: dict[tuple[object, object], set[int]] = defaultdict(set)
    for line in lines:
        cells[line.asked["prompt"], line.asked["version"]] |= line.cells
    parts = (
        Q(prompt_version=prompt, scenario_version=version, cell_id__in=some)
        for (prompt, version), some in cells.items()
    )
    return Q(*parts, _connector=Q.OR)


def compare_runs(first: int, second: int, query: CompareQuery) -> Compared:
    """Two runs against each other in whatever else `query` asks of both sides."""
    asked = {name: value for name, value in query.both.items() if name not in OF_ONE_RUN}
    found = [trials_of({**asked, "run": str(run)}, demo=query.demo) for run in (first, second)]
    counts = _counts(query, found)
    return _compared(counts, counts.keys, "paired" if worth_pairing(counts, flips(counts)) else "stratified")


def _counts(query: CompareQuery, found: Sequence[QuerySet[Trial]]) -> Counts:
    first, second = (tuple(read_lines(trials)) for trials in found)
    return bring_together(first, second, metric=query.metric, group=query.group, kind=query.kind)


def _compared(counts: Counts, keys: Sequence[Key], how: str) -> Compared:
    return paired(counts, keys) if how == "paired" else stratified(counts, keys)


def _rows(counts: Counts, how: str) -> tuple[Row, ...]:
    """One per stratum; where there are several, their intervals are simultaneous."""
    found = simultaneous([_compared(counts, [key], how) for key in counts.keys])
    labels = _labels(counts)
    rows = (Row(str(key[0]), label, one) for key, label, one in zip(counts.keys, labels, found, strict=True))
    return tuple(sorted(rows, key=lambda row: (row.compared.p if row.compared.p is not None else 2, row.scenario)))


def _labels(counts: Counts) -> list[str]:
    """What the strata differ in, beside the scenario; where versions are compared, those of both sides."""
    shared = enumerate((name for name in IDENTITY if name not in counts.differing), start=1)
    varying = [(place, name) for place, name in shared if len({key[place] for key in counts.keys}) > 1]
    said = [[_said(name, key[place]) for place, name in varying if key[place] != ""] for key in counts.keys]
    if "version" in counts.differing:
        pairs = ((counts.first[key][0].asked["version"], counts.second[key][0].asked["version"]) for key in counts.keys)
        said = [[*some, f"version {first} and {second}"] for some, (first, second) in zip(said, pairs, strict=True)]
    return [" · ".join(some) for some in said]


def _said(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "streamed" if value else "whole"
    return f"{name} {value}" if name in SAID_WITH_NAME else str(value)


def _share(whole: Compared) -> float:
    tried = whole.first.n + whole.second.n
    return (whole.first.k + whole.second.k) / tried if tried else 0.9


def needed_for(whole: Compared, points: int) -> Needed:
    """By the shares seen."""
    trials = trials_to_find(points / 100, share=_share(whole))
    return Needed(points, trials, max(0, trials - min(whole.first.n, whole.second.n)))


def side_names(query: CompareQuery) -> tuple[str, str]:
    """What each side has of its own, in words; what it is asked by where it has nothing."""
    return _named(query.a or query.side("a")), _named(query.b or query.side("b"))


def _named(axes: Mapping[str, str]) -> str:
    plain = {"provider", "model", "canonical", "profile", "strategy", "method", "upstream", "day"}
    said = (value if name in plain else f"{AXES[name].lower()} {value}" for name, value in axes.items())
    return " · ".join(said) or "nothing chosen"
