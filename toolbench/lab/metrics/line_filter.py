"""The part of a scope that chooses among configurations and scenarios, for cells and for sums over cells."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from toolbench.lab.models import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFilter:
    """What is chosen; an empty field chooses everything.

    Attributes:
        text: a part of the model's or the provider's name, in any case.
        models: full names.
        after: runs that were created at this time or later.
        before: runs that were created earlier than this time.
    """

    text: str = ""
    models: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    after: datetime | None = None
    before: datetime | None = None

    @property
    def has_time(self) -> bool:
        """Whether runs are chosen by their time, which sums over runs cannot tell."""
        return self.after is not None or self.before is not None

    def matches(self, line: Mapping[str, Any]) -> bool:
        """Return whether a sum with the columns of a configuration and a scenario is chosen. Times take no part."""
        text = self.text.lower()
        named = not text or text in line["model_name"].lower() or text in line["provider_name"].lower()
        return named and all(not values or line[column] in values for column, values in self._list_choices())

    def apply(self, cells: QuerySet[Cell]) -> QuerySet[Cell]:
        """Return the chosen ones of these cells."""
        found = Q()
        if self.text:
            found &= Q(config__model_name__icontains=self.text) | Q(config__provider_name__icontains=self.text)
        for column, values in self._list_choices():
            if values:
                name = column if column == "scenario" else f"config__{column}"
                found &= Q((f"{name}__in", values))
        if self.after:
            found &= Q(run__created_at__gte=self.after)
        if self.before:
            found &= Q(run__created_at__lt=self.before)
        return cells.filter(found)

    def _list_choices(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return (
            ("model_name", self.models),
            ("profile", self.profiles),
            ("strategy", self.strategies),
            ("scenario", self.scenarios),
        )
