"""Newest trials that match a filter: one page of them, and the numbers of trials by value of each facet.

One statement reads each trial once, since reading 10,000 of them takes most of the time of a page.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection

from toolbench.lab.results.trial_list.filter import TrialFilter, filter_trials
from toolbench.lab.results.trial_list.sort_columns import SORT_COLUMNS, annotate_sort_columns
from toolbench.lab.sql import load_statement

FACETS = ("outcome", "scenario", "cause", "model", "profile", "strategy")
_COLUMNS = ("id", "state", "outcome", "scenario", "cause", "config_id")


@dataclass(frozen=True, slots=True)
class NewestTrials:
    """A page of the newest trials of a filter.

    Attributes:
        ids: primary keys of the trials of the page, in the order of the filter.
        total: number of counted trials.
        is_more: whether more trials match than were counted.
        facets: number of counted trials by value, for each of FACETS; a trial that has not ended counts by its state
            instead of an outcome.
    """

    ids: tuple[int, ...] = ()
    total: int = 0
    is_more: bool = False
    facets: Mapping[str, Counter[str]] = field(default_factory=dict)


def read_newest_trials(trial_filter: TrialFilter, *, start: int, size: int, max_counted: int) -> NewestTrials:
    """Return a page of the newest trials of the filter, with one query; an `alike` filter takes another one.

    Args:
        trial_filter: the filter and the order.
        start: number of trials before the page.
        size: maximum number of trials on the page.
        max_counted: maximum number of trials that are counted and sorted; if more match, the newest are taken.
    """
    try:
        newest, parameters = _select_newest(trial_filter, _COLUMNS, max_counted + 1)
    except EmptyResultSet:
        return NewestTrials()
    with connection.cursor() as cursor:
        sql = load_statement("results/trial_list/read_newest", newest=newest, ordering=_build_ordering(trial_filter))
        cursor.execute(sql, (*parameters, max_counted, size, start))
        match_count, ids, rows = cursor.fetchone()
    is_more = match_count > max_counted
    return NewestTrials(tuple(ids), min(match_count, max_counted), is_more, _count_values(rows or ()))


def read_first_page(trial_filter: TrialFilter, *, size: int, max_listed: int) -> tuple[int, list[tuple[Any, ...]]]:
    """Return the first trials of a list, with one query; an `alike` filter takes another one.

    Args:
        trial_filter: the filter and the order.
        size: maximum number of trials.
        max_listed: maximum number of trials that are sorted; if more match, the newest are taken.

    Returns:
        The lowest primary key that is listed, or 0 if all matching trials are listed; and for each trial the primary
        key and the columns of the order.
    """
    try:
        newest, parameters = _select_newest(trial_filter, ("id",), max_listed + 1)
    except EmptyResultSet:
        return 0, []
    columns = ", ".join(f'"{column.name}"' for column in SORT_COLUMNS[trial_filter.sort])
    ordering = _build_ordering(trial_filter)
    with connection.cursor() as cursor:
        sql = load_statement("results/trial_list/read_first_page", newest=newest, columns=columns, ordering=ordering)
        cursor.execute(sql, (*parameters, max_listed, max_listed, size))
        rows = cursor.fetchall()
    return (rows[0][0] if rows else 0), [(row[-1], *row[1:]) for row in rows]  # every order ends with the id


def _select_newest(trial_filter: TrialFilter, columns: tuple[str, ...], limit: int) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL and the parameters that select the newest trials.

    The SQL selects `columns` and the columns of the order.

    Raises:
        EmptyResultSet: no trial can match.
    """
    names = dict.fromkeys((*columns, *(column.name for column in SORT_COLUMNS[trial_filter.sort])))
    matching = annotate_sort_columns(filter_trials(trial_filter)).order_by("-id")
    if trial_filter.run is not None and any(name.startswith("config__") for name in names):
        # This changes no result. It keeps PostgreSQL from reading all configurations.
        matching = matching.filter(config__run=trial_filter.run)
    sql, parameters = matching.values(*names)[:limit].query.sql_with_params()
    return sql, tuple(parameters)


def _build_ordering(trial_filter: TrialFilter) -> str:
    return ", ".join(column.sql for column in SORT_COLUMNS[trial_filter.sort])


def _count_values(rows: list[list[str | int | None]] | tuple[()]) -> Mapping[str, Counter[str]]:
    """Add up the rows of `read_newest.sql`: values in the order of FACETS, then a number of trials.

    The numbers of a facet leave out trials without a value.
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    for *values, trial_count in rows:
        for name, value in zip(FACETS, values, strict=True):
            if value:
                counts[name][str(value)] += int(trial_count or 0)
    return counts
