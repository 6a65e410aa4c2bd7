"""Removal of the bodies of old trials by the rules of retention, and a preview of it.

A trial keeps its verdict, versions, figures and the columns of its steps. Bodies, step details, the final answer and
the rendered prompt are removed. The search text is written again from the columns that are kept: names and reasons.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.db import connection, transaction

from toolbench.lab.accounts.audit import Action, record_action
from toolbench.lab.operations.retention_policy import (
    Kind,
    RetentionPolicy,
    describe_rule,
    load_retention_policy,
)
from toolbench.lab.sql import load_statement
from toolbench.lab.traces.search_text import TRIALS, write_search_texts

TRIALS_PER_BATCH = 200
SECONDS_PER_CALL = 5.0  # the scheduler has other jobs, and has to send heartbeats
SECONDS_BETWEEN_PASSES = 86_400.0
SAMPLE_SIZE = 200  # trials of a kind whose bodies a preview measures

_SELECT_DUE = load_statement(
    "operations/due_trials", columns="trial.id, rule.kind", tail="LIMIT %(limit)s FOR UPDATE OF trial SKIP LOCKED"
)
_COUNT_DUE = load_statement(
    "operations/count_due", due=load_statement("operations/due_trials", columns="trial.id, rule.kind", tail="")
)
_REMOVE_BODIES = load_statement("operations/remove_bodies")


@dataclass(frozen=True, slots=True)
class DueTrials:
    """Trials of one kind whose bodies are due for removal.

    Attributes:
        days: days after which the rule removes bodies.
        trials: number of trials.
        stored_bytes: stored bytes of their bodies, estimated from the newest SAMPLE_SIZE trials.
    """

    kind: Kind
    days: int
    trials: int
    stored_bytes: int

    @property
    def rule(self) -> str:
        """The rule in words."""
        return describe_rule(self.kind, self.days)


@dataclass(frozen=True, slots=True)
class RemovalResult:
    """Result of a call of `remove_due_bodies`.

    Attributes:
        removed: number of trials whose bodies were removed.
        last_id: id of the last trial whose bodies were removed; `after` if there was none.
        is_complete: False if the call ended because its time was over.
    """

    removed: int
    last_id: int
    is_complete: bool


def preview_removal(policy: RetentionPolicy) -> tuple[DueTrials, ...]:
    """Return what each rule would remove now, in the order of the rules, with one query that reads all trials."""
    if not policy.days_by_kind:
        return ()
    parameters = {**_build_parameters(policy), "sample_size": SAMPLE_SIZE}
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_DUE, parameters)
        counted = {kind: (trials, stored_bytes) for kind, trials, stored_bytes in cursor.fetchall()}
    return tuple(DueTrials(kind, days, *counted.get(kind.value, (0, 0))) for kind, days in policy.days_by_kind.items())


def remove_due_bodies(
    policy: RetentionPolicy,
    *,
    after: int = 0,
    seconds: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> RemovalResult:
    """Remove the bodies that are due, in batches of TRIALS_PER_BATCH, each in a transaction of its own.

    Args:
        policy: the rules.
        after: only trials with a greater id are processed.
        seconds: time after which no further batch is started; None for no limit.
        clock: the clock for `seconds`.
    """
    deadline = None if seconds is None else clock() + seconds
    removed, last_id = 0, after
    for batch_ids in _remove_batches(policy, after):
        removed += len(batch_ids)
        last_id = batch_ids[-1]
        if deadline is not None and clock() >= deadline:
            return RemovalResult(removed, last_id, is_complete=False)
    return RemovalResult(removed, last_id, is_complete=True)


def _remove_batches(policy: RetentionPolicy, after: int) -> Iterator[list[int]]:
    """Remove bodies batch by batch and yield the ids of each batch, in ascending order."""
    while policy.days_by_kind:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_SELECT_DUE, {**_build_parameters(policy), "after": after, "limit": TRIALS_PER_BATCH})
            due = cursor.fetchall()
            if not due:
                return
            rules = {kind: describe_rule(kind, days) for kind, days in policy.days_by_kind.items()}
            rows = [{"id": trial_id, "rule": rules[Kind(kind)]} for trial_id, kind in due]
            cursor.execute(_REMOVE_BODIES, {"rows": json.dumps(rows)})
            batch_ids = [trial_id for trial_id, _ in due]
            write_search_texts(TRIALS, batch_ids)
        after = batch_ids[-1]
        yield batch_ids


def _build_parameters(policy: RetentionPolicy) -> dict[str, str | int | list[str] | list[int]]:
    return {"kinds": policy.kinds, "days": policy.days, "after": 0}


class RetentionJob:
    """Job of the scheduler: a pass over all trials once a day, and at once when the rules change.

    A pass that takes longer than SECONDS_PER_CALL continues at the next call.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._policy = RetentionPolicy({})
        self._last_id = 0
        self._due_at = clock()

    def run(self) -> int:
        """Remove the bodies that are due, unless a pass by the same rules ended less than a day ago.

        Returns:
            The number of trials whose bodies were removed.
        """
        policy = load_retention_policy()
        if policy != self._policy:
            self._policy, self._last_id, self._due_at = policy, 0, self._clock()
        if self._clock() < self._due_at:
            return 0
        result = remove_due_bodies(policy, after=self._last_id, seconds=SECONDS_PER_CALL, clock=self._clock)
        self._last_id = 0 if result.is_complete else result.last_id
        if result.is_complete:
            self._due_at = self._clock() + SECONDS_BETWEEN_PASSES
        if result.removed:
            record_removal(result.removed)
        return result.removed


def record_removal(trial_count: int) -> None:
    """Add a removal to the audit list, as an action without a user."""
    subject = f"bodies of {trial_count} trial{'' if trial_count == 1 else 's'}, by the rules of retention"
    record_action(None, Action.DELETED, subject, "/settings/retention/")
