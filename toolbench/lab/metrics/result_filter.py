"""The part of a scope that chooses among configurations, scenarios and times, shared by all pages of results."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import Q

from toolbench.lab.query_params import QueryParams, clean_text, parse_whole_number

MAX_CHOICES = 200  # values of one field
# Column of a configuration, or "scenario", by the name of the parameter in a query string.
CHOICE_COLUMNS = {"model": "model_name", "profile": "profile", "strategy": "strategy", "scenario": "scenario"}
YEARS = range(1970, 3000)
DATE_NAMES = ("after", "before")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFilter:
    """What is chosen; an empty field chooses everything.

    Attributes:
        models: full names.
        after: runs that were created on this day or later, in UTC.
        before: runs that were created on this day or earlier, in UTC.
        upto: primary key of the newest run; a frozen address names it.
    """

    models: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    after: date | None = None
    before: date | None = None
    upto: int | None = None

    @classmethod
    def from_query(cls, query: QueryParams) -> tuple["ResultFilter", tuple[str, ...]]:
        """Return the filter of these URL parameters, and the names of those that could not be read."""
        texts = {name: clean_text(query.get(name, "")) for name in DATE_NAMES}
        days = {name: _parse_day(text) for name, text in texts.items()}
        found = cls(
            models=_read_values(query, "model"),
            profiles=_read_values(query, "profile"),
            strategies=_read_values(query, "strategy"),
            scenarios=_read_values(query, "scenario"),
            after=days["after"],
            before=days["before"],
            upto=parse_whole_number(clean_text(query.get("upto", ""))),
        )
        return found, tuple(name for name, text in texts.items() if text and days[name] is None)

    def keep_several(self) -> "ResultFilter":
        """Return the filter without choices of a single value."""
        several = {name: values if len(values) > 1 else () for name, values in self.choices.items()}
        return replace(
            self,
            models=several["model"],
            profiles=several["profile"],
            strategies=several["strategy"],
            scenarios=several["scenario"],
        )

    @property
    def has_time(self) -> bool:
        """Whether runs are chosen by their time or number, which sums over runs cannot tell."""
        return self.run_condition != Q()

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The parameters of a query string that give the same filter."""
        choices = [(name, value) for name, values in self.choices.items() for value in values]
        days = [(name, day.isoformat()) for name in DATE_NAMES if (day := getattr(self, name)) is not None]
        return (*choices, *days, *([("upto", str(self.upto))] if self.upto is not None else []))

    @property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        """The chosen values by the name of their parameter."""
        values = (self.models, self.profiles, self.strategies, self.scenarios)
        return dict(zip(CHOICE_COLUMNS, values, strict=True))

    @property
    def run_condition(self) -> Q:
        """The condition of the times on rows that have a run."""
        found = Q()
        if self.after:
            found &= Q(run__created_at__gte=_begin_day(self.after))
        if self.before:
            found &= Q(run__created_at__lt=_begin_day(self.before) + timedelta(days=1))
        if self.upto is not None:
            found &= Q(run__lte=self.upto)
        return found

    @property
    def condition(self) -> Q:
        """The condition on cells or trials."""
        found = self.run_condition
        for name, values in self.choices.items():
            if values:
                column = CHOICE_COLUMNS[name]
                found &= Q((f"{column if column == 'scenario' else f'config__{column}'}__in", values))
        return found

    def matches(self, line: Mapping[str, Any]) -> bool:
        """Return whether a row with the columns of a configuration and a scenario is chosen. Times take no part."""
        return all(not values or line[CHOICE_COLUMNS[name]] in values for name, values in self.choices.items())


NO_FILTER = ResultFilter()


def _read_values(query: QueryParams, name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(clean_text, query.getlist(name)))))[:MAX_CHOICES]


def _parse_day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.year in YEARS else None


def _begin_day(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
