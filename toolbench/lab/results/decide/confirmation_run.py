"""Confirmation of a decision: a run of only the leader on new trials, whose result is to be reported."""

import math
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from toolbench.evals.decisions.assessments import Assessment, DecisionRule
from toolbench.evals.decisions.requirements import assess_config, count_passes_without_failure
from toolbench.evals.statistics import count_more_answers_for_bounds, count_more_trials_to_reach_target
from toolbench.lab.metrics.pools import CONFIRMATION_PURPOSE
from toolbench.lab.models import DecisionRecord, Run, Trial
from toolbench.lab.planning.run_request import MAX_CELL_TRIALS, RunRequest
from toolbench.lab.results.decide.new_trials import (
    NewTrialsError,
    NewTrialsRequest,
    build_new_trials_request,
)
from toolbench.lab.results.decide.records import assessment_to_json, find_leader_row
from toolbench.lab.results.decide.run_figures import measure_run
from toolbench.lab.runs.launch import launch


@dataclass(frozen=True, slots=True)
class Confirmation:
    """State of a confirmation run.

    Attributes:
        assessment: result of the rule so far; None before any trial has a result.
        is_finished: whether the run has ended and no planned trial was cancelled, so that the result can be saved.
        obstacle: sentences about why the run cannot get a result any more and what to do; "" if it can or has one.
    """

    run: Run
    assessment: Assessment | None
    is_finished: bool
    obstacle: str = ""


def build_rule(record: DecisionRecord) -> DecisionRule:
    """Return the rule of the record."""
    return DecisionRule(record.rule["want"], record.rule["success"], record.rule["within_ms"])


def count_trials_needed(record: DecisionRecord) -> int:
    """Return the number of trials per scenario that a confirmation needs; 0 without a leader.

    If the leader's share of successes stays the same, the lower bound of success reaches the target with so many
    trials. If the rule depends on p95, they also give p95 an upper bound. The share is the mean over scenarios, because
    a confirmation tries all of them equally often.

    If the share does not exceed the target, no number of trials suffices. Then the confirmation gets as many trials as
    the leader had, or more if p95 needs them. The number is at most MAX_CELL_TRIALS, even if that is too few.
    """
    row, rule = find_leader_row(record), build_rule(record)
    if row is None:
        return 0
    successes, tried = row.get("delivered", row["passed"]), row["tried"]
    share = row.get("share", successes / max(1, tried))
    more_trials = count_more_trials_to_reach_target(share * tried, tried, rule.target) or 0
    needed = count_passes_without_failure(rule.target) if successes == tried else tried + more_trials
    total = max(needed, count_more_answers_for_bounds(0.95, 0) if rule.uses_p95 else 0)
    return min(MAX_CELL_TRIALS, math.ceil(total / max(1, len(row["scenarios"]))))


def launch_confirmation(
    record: DecisionRecord, *, owner: AbstractBaseUser | None, trials: int, confirmed_requests: int = 0
) -> Run:
    """Launch the confirmation run of a record: the leader's settings with a new seed.

    Args:
        record: the decision to confirm.
        owner: user that the run belongs to, or None.
        trials: trials per scenario.
        confirmed_requests: number of paid requests that the user has confirmed.

    Raises:
        NewTrialsError: `trials` is not between 1 and MAX_CELL_TRIALS, the record has a confirmation or no leader, or
            the same settings and scenario versions cannot be tried.
        LaunchError: the plan cannot be launched.
        PaidRequestsUnconfirmedError: the run may send more paid requests than `confirmed_requests`, and than are
            allowed without confirmation.
    """
    if not 1 <= trials <= MAX_CELL_TRIALS:
        raise NewTrialsError(f"Enter 1 to {MAX_CELL_TRIALS} trials of each scenario.")
    with transaction.atomic():
        locked = DecisionRecord.objects.select_for_update().get(pk=record.pk)
        if locked.confirmation_id or locked.confirmed:
            raise NewTrialsError(
                "This record has a confirmation already. A second one would let you choose between results."
            )
        run = launch(
            build_confirmation_request(record, trials=trials), owner=owner, confirmed_requests=confirmed_requests
        )
        DecisionRecord.objects.filter(pk=record.pk).update(confirmation=run)
    return run


def build_confirmation_request(record: DecisionRecord, *, trials: int) -> RunRequest:
    """Return the request of the confirmation run.

    Args:
        record: the decision to confirm.
        trials: trials per scenario.

    Raises:
        NewTrialsError: the record has no leader, or the same settings and scenario versions cannot be tried.
    """
    row = find_leader_row(record)
    if row is None:
        raise NewTrialsError("This record has no leader, so there is nothing to confirm.")
    title = f"Confirms decision {record.pk}: {record.title}"
    trials_request = NewTrialsRequest((row["config_id"],), (row["settings"],), tuple(row["scenarios"]), trials)
    return build_new_trials_request(trials_request, title=title, purpose=CONFIRMATION_PURPOSE)


def get_confirmation(record: DecisionRecord) -> Confirmation | None:
    """Return the state of the confirmation, without manually added trials.

    Returns:
        The state; None if there is no confirmation run, it was deleted, or the record has no leader.
    """
    run, leader = record.confirmation, find_leader_row(record)
    if run is None or run.deleted_at is not None or leader is None:
        return None
    cancelled_trials = run.trials.filter(outcome=Trial.Outcome.CANCELLED, added_by_hand=False)
    cancelled_trial = cancelled_trials.select_related("config").first()
    has_ended = run.state in Run.ENDED
    is_finished = has_ended and cancelled_trial is None
    obstacle = _describe_obstacle(cancelled_trial) if has_ended and cancelled_trial else ""
    measured_configs = measure_run(run.pk, group=record.group)
    if not measured_configs:
        return Confirmation(run, None, is_finished, obstacle)
    missing = tuple(sorted(set(leader["scenarios"]) - set(measured_configs[0].scenarios)))
    measured = replace(measured_configs[0], missing_scenarios=missing)
    return Confirmation(run, assess_config(measured, build_rule(record)), is_finished, obstacle)


def _describe_obstacle(cancelled_trial: Trial) -> str:
    """Return why a cancelled trial cannot be resumed, and what to do instead; "" if it can."""
    if cancelled_trial.provider_id is not None:
        return ""
    return (
        f"The provider {cancelled_trial.config.provider_name} was deleted, so the cancelled trials cannot be resumed "
        "and the confirmation has no result. Connect the provider again, try the configuration in a new run, and save "
        "a new decision."
    )


def save_confirmation(record: DecisionRecord) -> None:
    """Save the figures of the confirmation in the record, unless the record has such figures already.

    Raises:
        NewTrialsError: there is no confirmation, it has not finished, a planned trial was cancelled, or no trial has a
            result.
    """
    confirmation = get_confirmation(record)
    if confirmation is not None and confirmation.obstacle:
        raise NewTrialsError(f"Nothing was saved. {confirmation.obstacle}")
    if confirmation is None or confirmation.assessment is None or not confirmation.is_finished:
        raise NewTrialsError(
            "The confirmation has not finished or has no result. Nothing was saved. "
            "Resume its run if trials were cancelled."
        )
    row: dict[str, Any] = assessment_to_json(confirmation.assessment) | {"run_id": confirmation.run.pk}
    DecisionRecord.objects.filter(pk=record.pk, confirmed__isnull=True).update(confirmed=row)
