"""Filter chips of the pages of results: choices of models, profiles, strategies, scenarios and days."""

from dataclasses import dataclass

from toolbench.lab.metrics.pools import list_choices
from toolbench.lab.metrics.result_filter import ResultFilter
from toolbench.lab.results.scopes import IMPORTED, SIMULATED

_LABELS = {"model": "Models", "profile": "Profiles", "strategy": "Strategies", "scenario": "Scenarios"}


@dataclass(frozen=True, slots=True)
class FilterChip:
    """URL parameter of which the user can choose several values.

    Attributes:
        name: name of the parameter in the query string.
        options: (value, whether it is chosen) pairs, sorted by value; chosen values without trials are included.
    """

    name: str
    label: str
    options: tuple[tuple[str, bool], ...]

    @property
    def chosen_count(self) -> int:
        """Return the number of chosen values."""
        return sum(is_chosen for _, is_chosen in self.options)

    @property
    def is_useful(self) -> bool:
        """Return whether there is more than one value, or a chosen one that can be removed."""
        return len(self.options) > 1 or bool(self.chosen_count)


@dataclass(frozen=True, slots=True)
class FilterChips:
    """Chips and dates of a page.

    Attributes:
        after: first day in ISO form; "" without one.
        before: last day in ISO form; "" without one.
        upto: primary key of the newest run that a frozen address shows; None for other addresses.
    """

    chips: tuple[FilterChip, ...]
    after: str
    before: str
    upto: int | None = None


def get_filter_chips(chosen: ResultFilter, *, scope: str, runs: tuple[int, ...] = ()) -> FilterChips:
    """Return the chips of a page, with one query.

    Args:
        chosen: filter of the page.
        scope: SIMULATED for simulated runs, IMPORTED for imported runs, any other value for runs of real models.
        runs: primary keys of the chosen runs, for which `scope` is ignored; empty for all runs of the scope.
    """
    offered = list_choices(simulated=scope == SIMULATED, imported=scope == IMPORTED, runs=runs)
    chips = tuple(_build_chip(name, offered[name], values) for name, values in chosen.choices.items())
    after, before = (day.isoformat() if day else "" for day in (chosen.after, chosen.before))
    return FilterChips(tuple(chip for chip in chips if chip.is_useful), after, before, chosen.upto)


def _build_chip(name: str, offered: tuple[str, ...], chosen: tuple[str, ...]) -> FilterChip:
    values = sorted({*offered, *chosen})
    return FilterChip(name, _LABELS[name], tuple((value, value in chosen) for value in values))
