"""Confirming a decision: the leader alone, tried again on fresh instances and seeds; only that result is reported."""

import math
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from toolbench.evals.decisions.requirements import Rule, Standing, stand, straight_passes
from toolbench.evals.statistics import answers_until_closed, more_trials_to_clear
from toolbench.lab.models import DecisionRecord, Run
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.results.decide.candidates import CONFIRMATION, run_measured
from toolbench.lab.results.decide.fresh_trials import MOST_TRIALS, Asked, Unconfirmable, fresh_request
from toolbench.lab.results.decide.records import frozen_standing, leader_row
from toolbench.lab.runs.launch import launch


@dataclass(frozen=True, slots=True)
class Confirmation:
    """`standing` is None before anything was tried. `ended`: the run is over, so the result may be kept."""

    run: Run
    standing: Standing | None
    ended: bool


def rule_of(record: DecisionRecord) -> Rule:
    return Rule(record.rule["want"], record.rule["success"], record.rule["within_ms"])


def trials_wanted(record: DecisionRecord) -> int:
    """Per scenario: what would clear the bound at the share seen, and at least what gives p95 an upper bound where time
    counts. The confirmation tries every scenario equally often, so the share is the mean of theirs, as it was judged,
    however unequally often they were tried before."""
    row, rule = leader_row(record), rule_of(record)
    if row is None:
        return 0
    passed, tried = row.get("delivered", row["passed"]), row["tried"]
    share = row.get("share", passed / max(1, tried))
    at_share = more_trials_to_clear(share * tried, tried, rule.target)
    needed = straight_passes(rule.target) if passed == tried else tried + (at_share or 0)
    total = max(needed, answers_until_closed(0.95, 0) if rule.timed else 0)
    return min(MOST_TRIALS, math.ceil(total / max(1, len(row["scenarios"]))))


def confirm(record: DecisionRecord, *, owner: AbstractBaseUser | None, trials: int, agreed: int = 0) -> Run:
    """Launches the leader's settings once more with a fresh seed. Raises Unconfirmable, LaunchRefused, and
    ConfirmationNeeded when more paid requests may be sent than without asking, and than were `agreed` to."""
    if not 1 <= trials <= MOST_TRIALS:
        raise Unconfirmable(f"Between 1 and {MOST_TRIALS} trials of each scenario can be asked for.")
    with transaction.atomic():
        locked = DecisionRecord.objects.select_for_update().get(pk=record.pk)
        if locked.confirmation_id or locked.confirmed:
            raise Unconfirmable("It has its confirmation already: a second try would be a choice among confirmations.")
        run = launch(confirmation_request(record, trials=trials), owner=owner, agreed=agreed)
        DecisionRecord.objects.filter(pk=record.pk).update(confirmation=run)
    return run


def confirmation_request(record: DecisionRecord, *, trials: int) -> RunRequest:
    """The leader as it was frozen, asked for anew. Raises Unconfirmable where that would be other settings."""
    row = leader_row(record)
    if row is None:
        raise Unconfirmable("The record has no leader, so there is nothing to confirm.")
    title = f"Confirms decision {record.pk}: {record.title}"
    asked = Asked((row["config_id"],), (row["settings"],), tuple(row["scenarios"]), trials)
    return fresh_request(asked, title=title, purpose=CONFIRMATION)


def get_confirmation(record: DecisionRecord) -> Confirmation | None:
    """How the confirmation stands; trials added to it by hand are left out. None where none was asked for."""
    run = record.confirmation
    if run is None or run.deleted_at is not None:
        return None
    found = run_measured(run.pk, group=record.group)
    standing = stand(found[0], rule_of(record)) if found else None
    return Confirmation(run, standing, run.state in Run.ENDED)


def keep(record: DecisionRecord) -> None:
    """Freezes the confirmation's figures in the record, once. Raises Unconfirmable before it has ended."""
    found = get_confirmation(record)
    if found is None or found.standing is None or not found.ended:
        raise Unconfirmable("The confirmation has not ended yet: nothing was kept.")
    row: dict[str, Any] = frozen_standing(found.standing) | {"run_id": found.run.pk}
    DecisionRecord.objects.filter(pk=record.pk, confirmed__isnull=True).update(confirmed=row)
