"""Human verdicts on trials, which pages show beside the judge's verdict. Human verdicts change no count."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.contrib.postgres.expressions import ArraySubquery
from django.db import transaction
from django.db.models import OuterRef
from django.db.models.functions import JSONObject

from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import HumanVerdict, Trial
from toolbench.lab.query_params import clean_text, normalise_lines

MAX_REASON_CHARS = 4_000
_COLUMNS = ("verdict", "username", "reason", "at", "current", "execution")


@dataclass(frozen=True, slots=True)
class HumanVerdictRow:
    """Human verdict on a trial.

    Attributes:
        current: False for a replaced verdict, and for a verdict on an earlier execution of the trial.
        at: time at which the verdict was saved.
        differs_from_judge: whether the human verdict differs from the judge's current verdict.
    """

    verdict: str
    username: str
    reason: str
    at: datetime
    current: bool
    differs_from_judge: bool


def save_human_verdict(trial_id: int, person: User | None, *, verdict: str, reason: str) -> None:
    """Save a human verdict on the current execution of a trial.

    The new verdict replaces the current human verdict of the trial; the replaced one stays stored.

    Args:
        trial_id: primary key of the trial.
        person: the user; None without sign-in.
        verdict: "pass" or "fail".
        reason: why the user decided so.

    Raises:
        Trial.DoesNotExist: the trial does not exist, or its run was deleted.
        InvalidFieldsError: the trial neither passed nor failed, the verdict is unknown, or the reason is empty or too
            long.
    """
    with transaction.atomic():
        trial = Trial.objects.select_for_update(of=("self",)).get(pk=trial_id, run__deleted_at=None)
        text = clean_text(normalise_lines(reason))
        if errors := _find_errors(trial, verdict, text):
            raise InvalidFieldsError(errors)
        HumanVerdict.objects.filter(trial=trial, current=True).update(current=False)
        HumanVerdict.objects.create(
            trial=trial,
            execution=trial.execution,
            person=person,
            username=person.username if person else "",
            verdict=verdict,
            reason=text,
        )


def can_be_judged(trial: Trial) -> bool:
    """Return whether users may judge the trial: it passed or failed."""
    return trial.state == Trial.State.DONE and trial.outcome in HumanVerdict.Outcome.values


def build_verdicts_expression() -> ArraySubquery:
    """Return an expression that reads all human verdicts of each trial of a query, newest first."""
    rows = HumanVerdict.objects.filter(trial=OuterRef("pk"))
    return ArraySubquery(rows.values_list(JSONObject(**{name: name for name in _COLUMNS})))


def parse_verdict_rows(rows: Iterable[Mapping[str, Any]], trial: Trial) -> tuple[HumanVerdictRow, ...]:
    """Return the human verdicts of a trial from the value of `build_verdicts_expression`."""
    return tuple(
        HumanVerdictRow(
            verdict=row["verdict"],
            username=row["username"],
            reason=row["reason"],
            at=datetime.fromisoformat(row["at"]),
            current=row["current"] and row["execution"] == trial.execution,
            differs_from_judge=row["verdict"] != trial.outcome,
        )
        for row in rows
    )


def _find_errors(trial: Trial, verdict: str, reason: str) -> dict[str, list[str]]:
    if not can_be_judged(trial):
        return {"verdict": ["Only a trial that passed or failed can be judged."]}
    errors: dict[str, list[str]] = {}
    if verdict not in HumanVerdict.Outcome.values:
        errors["verdict"] = ["Choose pass or fail."]
    if not reason:
        errors["reason"] = ["The reason is missing. Enter one."]
    elif len(reason) > MAX_REASON_CHARS:
        errors["reason"] = [f"The reason has {len(reason):,} characters. Shorten it to {MAX_REASON_CHARS:,}."]
    return errors
