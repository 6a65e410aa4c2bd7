"""Facets of the list of trials: numbers of trials by outcome, model, scenario, cause, profile and strategy."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.sql import load_statement

MAX_VALUES = 12  # of one facet
FACET_LABELS = {
    "outcome": "Outcome",
    "model": "Model",
    "scenario": "Scenario",
    "cause": "Cause",
    "profile": "Profile",
    "strategy": "Strategy",
}
_COUNT_FACETS = load_statement("results/trial_list/count_facets")


@dataclass(frozen=True, slots=True)
class FacetValue:
    """Value of a facet.

    Attributes:
        percent: its share of the counted trials in percent, rounded.
        share: the same with one decimal, for bars.
        query: query string of the list with this value chosen, or without it if it is chosen already.
    """

    value: str
    count: int
    percent: int
    share: float
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


def count_facets(ids: Sequence[int], trial_filter: TrialFilter) -> tuple[Facet, ...]:
    """Return the facets of the trials with these ids. One query."""
    counts: dict[str, list[tuple[str, int]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_FACETS, [list(ids)])
        for name, value, count in cursor.fetchall():
            if value:
                counts.setdefault(name, []).append((value, count))
    return tuple(_build_facet(name, counts[name], len(ids), trial_filter) for name in FACET_LABELS if counts.get(name))


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
