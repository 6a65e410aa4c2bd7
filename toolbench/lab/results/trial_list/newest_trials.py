"""Newest trials that match a filter: one page of them, and numbers of trials by value of each facet.

One statement reads each trial once, since reading 10,000 of them takes most of the time of a page.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

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
        is_more: whether more trials match than are counted.
        facets: number of counted trials by value, for each of FACETS; the outcome of an open trial is its state.
    """

    ids: tuple[int, ...] = ()
    total: int = 0
    is_more: bool = False
    facets: Mapping[str, Counter[str]] = field(default_factory=dict)


def read_newest_trials(trial_filter: TrialFilter, *, start: int, size: int, max_counted: int) -> NewestTrials:
    """Return trials of the filter, with one query; an `alike` filter takes another one.

    Args:
        trial_filter: the filter and the order.
        start: number of trials before the page.
        size: maximum number of trials on the page.
        max_counted: maximum number of trials that are counted and sorted; if more match, the newest.
    """
    ordering = SORT_COLUMNS[trial_filter.sort]
    columns = dict.fromkeys((*_COLUMNS, *(column.name for column in ordering)))
    matching = filter_trials(trial_filter).order_by("-id")
    try:
        newest, parameters = annotate_sort_columns(matching).values(*columns)[: max_counted + 1].query.sql_with_params()
    except EmptyResultSet:
        return NewestTrials()
    terms = ", ".join(column.sql for column in ordering)
    with connection.cursor() as cursor:
        sql = load_statement("results/trial_list/read_newest", newest=newest, ordering=terms)
        cursor.execute(sql, (*parameters, max_counted, size, start))
        match_count, ids, rows = cursor.fetchone()
    is_more = match_count > max_counted
    return NewestTrials(tuple(ids), min(match_count, max_counted), is_more, _count_values(rows or ()))


def _count_values(rows: list[list[str | int | None]] | tuple[()]) -> Mapping[str, Counter[str]]:
    """Add up the rows of `read_newest.sql`: values in the order of FACETS, and a number of trials.

    Trials without a value of a facet are left out of its numbers.
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    for *values, trials in rows:
        for name, value in zip(FACETS, values, strict=True):
            if value:
                counts[name][str(value)] += int(trials or 0)
    return counts
