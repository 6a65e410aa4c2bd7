"""The chips of a page of results: what can be chosen of its runs, and what is."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolbench.lab.metrics.pools import list_choices
from toolbench.lab.metrics.result_filter import ResultFilter

_LABELS = {"model": "Models", "profile": "Profiles", "strategy": "Strategies", "scenario": "Scenarios"}


@dataclass(frozen=True, slots=True)
class ScopeChip:
    """A choice of several values.

    Attributes:
        name: of the parameter in the query string.
        options: values with whether each is chosen; chosen ones that were never tried are among them.
    """

    name: str
    label: str
    options: tuple[tuple[str, bool], ...]

    @property
    def chosen_count(self) -> int:
        """The number of chosen values."""
        return sum(is_chosen for _, is_chosen in self.options)

    @property
    def is_useful(self) -> bool:
        """Whether there is anything to choose or to take back."""
        return len(self.options) > 1 or bool(self.chosen_count)


@dataclass(frozen=True, slots=True)
class ScopeChips:
    """The chips of a page.

    Attributes:
        after: first day in ISO form; "" for none.
        before: last day in ISO form; "" for none.
        upto: primary key of the newest run of a frozen address; None for none.
    """

    chips: tuple[ScopeChip, ...]
    after: str
    before: str
    upto: int | None = None


def get_scope_chips(chosen: ResultFilter, *, kind: str, runs: tuple[int, ...] = ()) -> ScopeChips:
    """Return the chips with two queries.

    Args:
        chosen: what is chosen now.
        kind: "demo" for simulated runs, "imported" for imported ones, else the user's own.
        runs: primary keys of named runs, for which `kind` does not count.
    """
    tried = list_choices(simulated=kind == "demo", imported=kind == "imported", runs=runs)
    chips = tuple(_build_chip(name, tried, values) for name, values in chosen.choices.items())
    after, before = (day.isoformat() if day else "" for day in (chosen.after, chosen.before))
    return ScopeChips(tuple(chip for chip in chips if chip.is_useful), after, before, chosen.upto)


def _build_chip(name: str, tried: Mapping[str, tuple[str, ...]], chosen: tuple[str, ...]) -> ScopeChip:
    values = sorted({*tried[name], *chosen})
    return ScopeChip(name, _LABELS[name], tuple((value, value in chosen) for value in values))
