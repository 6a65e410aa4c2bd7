"""Filter by configuration, scenario and time that all pages of results share."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import Q

from toolbench.lab.query_params import QueryParams, clean_text, parse_whole_number

MAX_CHOICES = 200  # values of one field
# Columns by URL parameter: `scenario` is a column of cells and trials, the others are columns of configurations.
CHOICE_COLUMNS = {"model": "model_name", "profile": "profile", "strategy": "strategy", "scenario": "scenario"}
VALID_YEARS = range(1970, 3000)
DATE_NAMES = ("after", "before")  # URL parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFilter:
    """Chosen configurations, scenarios and times; an empty field matches everything.

    Attributes:
        models: names of models, as in `RunConfig.model_name`.
        profiles: names of sampling profiles.
        strategies: strategies, as in `RunConfig.strategy`.
        scenarios: slugs of scenarios.
        after: first day (UTC) on which matching runs were created.
        before: last day (UTC) on which matching runs were created.
        upto: id of the newest run that matches; permanent links set it.
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
        """Return the filter of these URL parameters, and the names of those that could not be read.

        Only `after`, `before` and `upto` can be unreadable.
        """
        texts = {name: clean_text(query.get(name, "")) for name in (*DATE_NAMES, "upto")}
        days = {name: parse_day(texts[name]) for name in DATE_NAMES}
        upto = parse_whole_number(texts["upto"])
        result_filter = cls(
            models=_read_values(query, "model"),
            profiles=_read_values(query, "profile"),
            strategies=_read_values(query, "strategy"),
            scenarios=_read_values(query, "scenario"),
            after=days["after"],
            before=days["before"],
            upto=upto,
        )
        parsed = {**days, "upto": upto}
        return result_filter, tuple(name for name, text in texts.items() if text and parsed[name] is None)

    def drop_single_choices(self) -> "ResultFilter":
        """Return the filter without the choices of fields in which only one value is chosen."""
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
        """Whether the filter depends on the date or the id of a run, by which stored pools cannot be filtered."""
        return self.run_condition != Q()

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Name and value of each URL parameter from which `from_query` makes the same filter."""
        choices = [(name, value) for name, values in self.choices.items() for value in values]
        days = [(name, day.isoformat()) for name in DATE_NAMES if (day := getattr(self, name)) is not None]
        return (*choices, *days, *([("upto", str(self.upto))] if self.upto is not None else []))

    @property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        """The chosen values by URL parameter."""
        values = (self.models, self.profiles, self.strategies, self.scenarios)
        return dict(zip(CHOICE_COLUMNS, values, strict=True))

    @property
    def excludes_new_runs(self) -> bool:
        """Whether new runs do not match, because `before` is a past day or `upto` is set."""
        return self.upto is not None or (self.before is not None and self.before < datetime.now(UTC).date())

    @property
    def run_condition(self) -> Q:
        """The condition of the dates and of `upto`, for database models with a foreign key `run`."""
        condition = Q()
        if self.after:
            condition &= Q(run__created_at__gte=_get_start_of_day(self.after))
        if self.before:
            condition &= Q(run__created_at__lt=_get_start_of_day(self.before) + timedelta(days=1))
        if self.upto is not None:
            condition &= Q(run__lte=self.upto)
        return condition

    @property
    def condition(self) -> Q:
        """The condition of the whole filter, for cells or trials."""
        condition = self.run_condition
        for name, values in self.choices.items():
            if values:
                column = CHOICE_COLUMNS[name]
                condition &= Q((f"{column if column == 'scenario' else f'config__{column}'}__in", values))
        return condition

    def matches(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row with the columns of CHOICE_COLUMNS matches; dates and `upto` are ignored."""
        return all(not values or row[CHOICE_COLUMNS[name]] in values for name, values in self.choices.items())


NO_FILTER = ResultFilter()


def _read_values(query: QueryParams, name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(clean_text, query.getlist(name)))))[:MAX_CHOICES]


def parse_day(text: str) -> date | None:
    """Return the day of an ISO 8601 date such as 2026-02-28; None for other texts and a year not in VALID_YEARS."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.year in VALID_YEARS else None


def _get_start_of_day(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
