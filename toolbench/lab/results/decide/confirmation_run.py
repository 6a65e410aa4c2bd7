"""Confirming a decision: the leader alone, tried again on fresh instances and seeds; only that result is reported."""

import math
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from toolbench.evals.decisions.requirements import Assessment, DecisionRule, assess_config, count_passes_without_failure
from toolbench.evals.statistics import count_answers_until_closed, count_more_trials_to_clear
from toolbench.lab.models import DecisionRecord, Run
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.results.decide.candidates import CONFIRMATION_PURPOSE, measure_run
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
    """`standing` is None before anything was tried. `ended`: the run is over, so the result may be kept."""

    run: Run
    standing: Assessment | None
    ended: bool


def build_rule(record: DecisionRecord) -> DecisionRule:
    return DecisionRule(record.rule["want"], record.rule["success"], record.rule["within_ms"])


def count_trials_needed(record: DecisionRecord) -> int:
    """Per scenario: what would clear the bound at the share seen, and at least what gives p95 an upper bound where time
    counts. The confirmation tries every scenario equally often, so the share is the mean of theirs, as it was judged,
    however unequally often they were tried before."""
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
    """Launches the leader's settings once more with a fresh seed. Raises FreshTrialsError, LaunchError, and
    ConfirmationNeededError when more paid requests may be sent than without asking, and than were `agreed` to."""
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
    """The leader as it was frozen, asked for anew. Raises FreshTrialsError where that would be other settings."""
    row = find_leader_row(record)
    if row is None:
        raise FreshTrialsError("The record has no leader, so there is nothing to confirm.")
    title = f"Confirms decision {record.pk}: {record.title}"
    asked = FreshTrialsRequest((row["config_id"],), (row["settings"],), tuple(row["scenarios"]), trials)
    return build_fresh_request(asked, title=title, purpose=CONFIRMATION_PURPOSE)


def get_confirmation(record: DecisionRecord) -> Confirmation | None:
    """How the confirmation stands; trials added to it by hand are left out. None where none was asked for."""
    run = record.confirmation
    if run is None or run.deleted_at is not None:
        return None
    found = measure_run(run.pk, group=record.group)
    standing = assess_config(found[0], build_rule(record)) if found else None
    return Confirmation(run, standing, run.state in Run.ENDED)


def save_confirmation(record: DecisionRecord) -> None:
    """Freezes the confirmation's figures in the record, once. Raises FreshTrialsError before it has ended."""
    found = get_confirmation(record)
    if found is None or found.standing is None or not found.ended:
        raise FreshTrialsError("The confirmation has not ended yet: nothing was kept.")
    row: dict[str, Any] = standing_to_json(found.standing) | {"run_id": found.run.pk}
    DecisionRecord.objects.filter(pk=record.pk, confirmed__isnull=True).update(confirmed=row)
