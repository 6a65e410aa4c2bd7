"""Confirmation of a decision: the leader alone, tried on new instances and seeds; only this result is reported."""

import math
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from toolbench.evals.decisions.assessments import Assessment, DecisionRule
from toolbench.evals.decisions.requirements import assess_config, count_passes_without_failure
from toolbench.evals.statistics import count_answers_until_closed, count_more_trials_to_clear
from toolbench.lab.metrics.pools import CONFIRMATION_PURPOSE
from toolbench.lab.models import DecisionRecord, Run
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.results.decide.candidates import measure_run
from toolbench.lab.results.decide.fresh_trials import (
    MAX_TRIALS,
    FreshTrialsError,
    FreshTrialsRequest,
    build_fresh_request,
)
from toolbench.lab.results.decide.records import find_leader_row, standing_to_json
from toolbench.lab.runs.launch import launch


@dataclass(frozen=True, slots=True)
class Confirmation:
    """State of a confirmation run.

    Attributes:
        standing: None before any trial has finished.
        ended: True if the run is over, so that the result may be saved.
    """

    run: Run
    standing: Assessment | None
    ended: bool


def build_rule(record: DecisionRecord) -> DecisionRule:
    """Return the rule of the record."""
    return DecisionRule(record.rule["want"], record.rule["success"], record.rule["within_ms"])


def count_trials_needed(record: DecisionRecord) -> int:
    """Return the trials per scenario that a confirmation needs, at most MAX_TRIALS; 0 without a leader.

    They would clear the bound at the observed share and, where the rule limits time, give p95 an upper bound. A
    confirmation tries every scenario equally often, so the share is the mean over scenarios, as it was judged.
    """
    row, rule = find_leader_row(record), build_rule(record)
    if row is None:
        return 0
    passed, tried = row.get("delivered", row["passed"]), row["tried"]
    share = row.get("share", passed / max(1, tried))
    at_share = count_more_trials_to_clear(share * tried, tried, rule.target)
    needed = count_passes_without_failure(rule.target) if passed == tried else tried + (at_share or 0)
    total = max(needed, count_answers_until_closed(0.95, 0) if rule.timed else 0)
    return min(MAX_TRIALS, math.ceil(total / max(1, len(row["scenarios"]))))


def launch_confirmation(record: DecisionRecord, *, owner: AbstractBaseUser | None, trials: int, agreed: int = 0) -> Run:
    """Launch the leader's settings again with a new seed.

    Args:
        record: the decision to confirm.
        owner: user that the run belongs to, or None.
        trials: trials per scenario.
        agreed: number of paid requests that the user has confirmed.

    Raises:
        FreshTrialsError: the number is out of range, a confirmation exists, or the same settings cannot be tried.
        LaunchError: the plan cannot be launched.
        PaidRequestsUnconfirmedError: more paid requests may be sent than without confirmation and than `agreed`.
    """
    if not 1 <= trials <= MAX_TRIALS:
        raise FreshTrialsError(f"Between 1 and {MAX_TRIALS} trials of each scenario can be asked for.")
    with transaction.atomic():
        locked = DecisionRecord.objects.select_for_update().get(pk=record.pk)
        if locked.confirmation_id or locked.confirmed:
            raise FreshTrialsError(
                "It has its confirmation already: a second try would be a choice among confirmations."
            )
        run = launch(build_confirmation_request(record, trials=trials), owner=owner, agreed=agreed)
        DecisionRecord.objects.filter(pk=record.pk).update(confirmation=run)
    return run


def build_confirmation_request(record: DecisionRecord, *, trials: int) -> RunRequest:
    """Return the request for new trials of the frozen leader.

    Raises:
        FreshTrialsError: the record has no leader, or the settings would differ.
    """
    row = find_leader_row(record)
    if row is None:
        raise FreshTrialsError("The record has no leader, so there is nothing to confirm.")
    title = f"Confirms decision {record.pk}: {record.title}"
    trials_request = FreshTrialsRequest((row["config_id"],), (row["settings"],), tuple(row["scenarios"]), trials)
    return build_fresh_request(trials_request, title=title, purpose=CONFIRMATION_PURPOSE)


def get_confirmation(record: DecisionRecord) -> Confirmation | None:
    """Return the state of the confirmation without manually added trials.

    Returns:
        None if it was not launched or was deleted.
    """
    run = record.confirmation
    if run is None or run.deleted_at is not None:
        return None
    found = measure_run(run.pk, group=record.group)
    standing = assess_config(found[0], build_rule(record)) if found else None
    return Confirmation(run, standing, run.state in Run.ENDED)


def save_confirmation(record: DecisionRecord) -> None:
    """Save the figures of the confirmation in the record, once.

    Raises:
        FreshTrialsError: the confirmation has not ended.
    """
    found = get_confirmation(record)
    if found is None or found.standing is None or not found.ended:
        raise FreshTrialsError("The confirmation has not ended yet: nothing was kept.")
    row: dict[str, Any] = standing_to_json(found.standing) | {"run_id": found.run.pk}
    DecisionRecord.objects.filter(pk=record.pk, confirmed__isnull=True).update(confirmed=row)
