"""Neighbours of a trial in the list of a filter: the previous, the next, and the next failed one."""

from dataclasses import dataclass

from django.db.models import Q, Subquery

from toolbench.lab.models import Trial
from toolbench.lab.results.trial_list.filter import FAILED_FIRST_ORDERING, RUN_ORDERING, TrialFilter, filter_trials


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Primary keys of neighbouring trials in the order of `get_neighbours`; None at the ends of the list.

    Attributes:
        next_failed: the next failed trial after this one, without infrastructure errors; None if there is none.
    """

    previous: int | None
    next: int | None
    next_failed: int | None


def get_neighbours(trial: Trial, trial_filter: TrialFilter) -> Neighbours:
    """Return the neighbours of a trial, with one query.

    Trials are in FAILED_FIRST_ORDERING if the filter has the sort order "failed", otherwise in RUN_ORDERING, whatever
    the order of the list.
    """
    after, before = _build_after_condition(trial, trial_filter), _build_before_condition(trial, trial_filter)
    ordering = FAILED_FIRST_ORDERING if trial_filter.sort == "failed" else RUN_ORDERING
    backwards = [name[1:] if name.startswith("-") else f"-{name}" for name in ordering]
    matching = filter_trials(trial_filter)
    following = matching.filter(after).order_by(*ordering).values("pk")
    queries = {
        "previous_pk": matching.filter(before).order_by(*backwards).values("pk"),
        "next_pk": following,
        "next_failed_pk": following.filter(outcome=Trial.Outcome.FAIL),
    }
    subqueries = {name: Subquery(trials[:1]) for name, trials in queries.items()}
    row = Trial.objects.filter(pk=trial.pk).annotate(**subqueries).values_list(*subqueries).get()
    return Neighbours(*row)


def _build_after_condition(trial: Trial, trial_filter: TrialFilter) -> Q:
    later = Q(run_id__lt=trial.run_id) | Q(run_id=trial.run_id, position__gt=trial.position)
    if trial_filter.sort != "failed":
        return later
    rank = _compute_rank(trial)
    return Q(rank__gt=rank) | (Q(rank=rank) & later)


def _build_before_condition(trial: Trial, trial_filter: TrialFilter) -> Q:
    earlier = Q(run_id__gt=trial.run_id) | Q(run_id=trial.run_id, position__lt=trial.position)
    if trial_filter.sort != "failed":
        return earlier
    rank = _compute_rank(trial)
    return Q(rank__lt=rank) | (Q(rank=rank) & earlier)


def _compute_rank(trial: Trial) -> int:
    """Return the rank that FAILED_FIRST gives the trial."""
    if trial.state != Trial.State.DONE:
        return 3
    return {Trial.Outcome.FAIL.value: 0, Trial.Outcome.INFRA.value: 1}.get(trial.outcome, 2)
