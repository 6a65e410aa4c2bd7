"""Neighbours of a trial in a filtered list: the previous trial, the next one, and the next failed one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet, Subquery

from toolbench.lab.models import Trial
from toolbench.lab.results.trial_list.filter import TrialFilter, filter_trials, has_named_runs
from toolbench.lab.results.trial_list.index import MAX_COUNTED_TRIALS
from toolbench.lab.results.trial_list.sort_columns import (
    SORT_COLUMNS,
    SortColumn,
    annotate_sort_columns,
    build_condition_after,
)

_UNLIMITED_SORTS = ("failed", "order")


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Primary keys of neighbouring trials in the order of the list; None at the ends of the list.

    Attributes:
        next_failed: the next failed trial after this one, without infrastructure errors; None if there is none.
    """

    previous: int | None
    next: int | None
    next_failed: int | None


def get_neighbours(trial: Trial, trial_filter: TrialFilter) -> Neighbours:
    """Return the neighbours of a trial in the order of the filter, with at most three queries.

    They are the trials before and after the place of the trial in this order, even if the filter excludes the trial.
    """
    columns = SORT_COLUMNS[trial_filter.sort]
    values = [_get_sort_value(trial, column) for column in columns]
    reversed_columns = [column.reverse() for column in columns]
    matching = _limit_to_newest(annotate_sort_columns(filter_trials(trial_filter)), trial_filter)
    following = _select_following(matching, columns, values)
    queries = {
        "previous_pk": _select_following(matching, reversed_columns, values),
        "next_pk": following,
        "next_failed_pk": following.filter(outcome=Trial.Outcome.FAIL),
    }
    subqueries = {name: Subquery(trials.values("pk")[:1]) for name, trials in queries.items()}
    row = Trial.objects.filter(pk=trial.pk).annotate(**subqueries).values_list(*subqueries).get()
    return Neighbours(*row)


def _select_following(
    matching: QuerySet[Trial], columns: Sequence[SortColumn], values: Sequence[Any]
) -> QuerySet[Trial]:
    following = matching.filter(build_condition_after(columns, values))
    return following.order_by(*(column.expression for column in columns))


def _limit_to_newest(matching: QuerySet[Trial], trial_filter: TrialFilter) -> QuerySet[Trial]:
    """Return the newest MAX_COUNTED_TRIALS matching trials, as the list does, with one query.

    All matching trials are returned, without a query, if the filter names runs, cells or configurations, or if its
    order is one of _UNLIMITED_SORTS.
    """
    if has_named_runs(trial_filter) or trial_filter.sort in _UNLIMITED_SORTS:
        return matching
    newest = matching.order_by("-pk").values_list("pk", flat=True)
    oldest = list(newest[MAX_COUNTED_TRIALS - 1 : MAX_COUNTED_TRIALS])
    return matching.filter(pk__gte=oldest[0]) if oldest else matching


def _get_sort_value(trial: Trial, column: SortColumn) -> Any:
    """Return the trial's value in a sort column; None if the value is unknown."""
    match column.name:
        case "rank":
            return _compute_rank(trial)
        case "tokens":
            return trial.input_tokens + trial.output_tokens
        case "known_cause":
            return trial.cause or None
        case "config__model_name":
            return trial.config.model_name
        case "config__profile":
            return trial.config.profile
    return getattr(trial, column.name)


def _compute_rank(trial: Trial) -> int:
    """Return the rank that FAILED_FIRST gives the trial."""
    if trial.state != Trial.State.DONE:
        return 3
    return {Trial.Outcome.FAIL.value: 0, Trial.Outcome.INFRA.value: 1}.get(trial.outcome, 2)
