"""Facets of the trial list: numbers of trials by outcome, model, scenario, cause, profile and strategy."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolbench.lab.results.trial_list.filter import TrialFilter

MAX_VALUES = 12  # of one facet
FACET_LABELS = {
    "outcome": "Outcome",
    "model": "Model",
    "scenario": "Scenario",
    "cause": "Cause",
    "profile": "Profile",
    "strategy": "Strategy",
}


@dataclass(frozen=True, slots=True)
class FacetValue:
    """Value of a facet.

    Attributes:
        percent: share of the counted trials that have the value, in whole percent.
        bar_percent: the same share with one decimal, for the length of a bar.
        query: query string of the list with this value chosen; if it is chosen already, without the value.
    """

    value: str
    count: int
    percent: int
    bar_percent: float
    is_chosen: bool
    query: str


@dataclass(frozen=True, slots=True)
class Facet:
    """Field by which the list can be filtered.

    Attributes:
        values: the most frequent values, at most MAX_VALUES.
        more: number of further values.
    """

    name: str
    label: str
    values: tuple[FacetValue, ...]
    more: int

    @property
    def is_open(self) -> bool:
        """Return whether the facet is expanded: outcome and model always, others if a value is chosen."""
        return self.name in ("outcome", "model") or any(value.is_chosen for value in self.values)


def build_facets(counts: Mapping[str, Counter[str]], total: int, trial_filter: TrialFilter) -> tuple[Facet, ...]:
    """Return the facets that have a value, each with its most frequent values first.

    Args:
        counts: number of trials by value, for each facet.
        total: number of the counted trials.
        trial_filter: the filter of the list.
    """
    ordered = {name: sorted(counter.items(), key=lambda pair: (-pair[1], pair[0])) for name, counter in counts.items()}
    return tuple(_build_facet(name, ordered[name], total, trial_filter) for name in FACET_LABELS if ordered.get(name))


def _build_facet(name: str, counts: Sequence[tuple[str, int]], total: int, trial_filter: TrialFilter) -> Facet:
    chosen = getattr(trial_filter, name)
    values = tuple(
        FacetValue(
            value,
            count,
            round(100 * count / total),
            round(100 * count / total, 1),
            value == chosen,
            trial_filter.query(**{name: "" if value == chosen else value}),
        )
        for value, count in counts[:MAX_VALUES]
    )
    return Facet(name, FACET_LABELS[name], values, max(0, len(counts) - MAX_VALUES))
