"""The trials that would tell: a run of exactly those that the decision page names, which the decision then counts.

They are fresh trials of a run of their own, in the same scenarios and with the same settings. Since they were planned
after looking, a leader that has some is to be confirmed (docs/decisions/061-rules-of-a-decision.md)."""

import hashlib
import json
from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser
from django.db import connection, transaction

from toolbench.evals.decisions.choice import AdditionalTrials
from toolbench.lab.models import Run, RunConfig
from toolbench.lab.planning.run_request import LaunchError, RunRequest
from toolbench.lab.results.decide.candidates import MORE_TRIALS_PURPOSE, Candidate
from toolbench.lab.results.decide.fresh_trials import (
    MAX_TRIALS,
    FreshTrialsError,
    FreshTrialsRequest,
    build_fresh_request,
)
from toolbench.lab.results.decide.page import DecidePage, get_decide_page
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.runs.launch import launch

_PLAN_LOCK_ID = 7_204_311  # advisory: one plan at a time is checked and launched


@dataclass(frozen=True, slots=True)
class MissingTrialsPlan:
    """What the button would plan.

    Attributes:
        labels: the configurations that get these trials.
        trials: how many of each of `scenarios`, for each configuration.
        request: None where it would be refused; then `refusal` says why.
        shown: stands for this plan over these measurements, so that another one is not launched in its place.
    """

    labels: tuple[str, ...]
    trials: int
    scenarios: tuple[str, ...]
    request: RunRequest | None
    refusal: str
    shown: str

    @property
    def total(self) -> int:
        return self.trials * len(self.scenarios) * len(self.labels)


def get_missing_trials_plan(page: DecidePage) -> MissingTrialsPlan | None:
    """Return what the button would plan; None where nothing would tell, or where trials are still to come."""
    more, candidates = page.decision.more, _list_candidates(page)
    if more is None or any(one.pending_trials for one in candidates):
        return None
    labels = tuple(one.measured.label for one in candidates)
    measured = [(one.measured.key, one.measured.tried) for one in candidates]
    shown = hashlib.sha256(json.dumps([measured, more.scenarios, more.each]).encode()).hexdigest()
    request, refusal = None, ""
    try:
        request = _build_request(candidates, more)
    except (FreshTrialsError, LaunchError) as refused:
        refusal = str(refused)
    return MissingTrialsPlan(labels, more.each, more.scenarios, request, refusal, shown)


def launch_missing_trials(query: DecideQuery, *, owner: AbstractBaseUser | None, shown: str, agreed: int = 0) -> Run:
    """Launch the missing trials of the decision with a fresh seed, if they are still those of the offer `shown`.

    Raises:
        Unconfirmable: nothing is missing, other trials are than were shown, or the same settings cannot be tried.
        LaunchError: the plan cannot be tried.
        ConfirmationNeededError: more paid requests may be sent than without asking, and than were `agreed` to.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_PLAN_LOCK_ID])
        page = get_decide_page(query)
        request = _check_agreed_plan(get_missing_trials_plan(page), shown)
        run = launch(request, owner=owner, agreed=agreed)
        Run.objects.filter(pk=run.pk).update(repeat_of=_find_original_run_id(_list_candidates(page)[0]))
    return run


def _check_agreed_plan(offer: MissingTrialsPlan | None, shown: str) -> RunRequest:
    if offer is None:
        raise FreshTrialsError("No trials are missing now: the decision has changed, or its trials are still to come.")
    if offer.request is None:
        raise FreshTrialsError(offer.refusal)
    if offer.shown != shown:
        raise FreshTrialsError(
            "Other trials are missing now than were shown: the measurements have changed. Read the decision again."
        )
    return offer.request


def _build_request(candidates: tuple[Candidate, ...], more: AdditionalTrials) -> RunRequest:
    if more.each > MAX_TRIALS:
        raise FreshTrialsError(
            f"It would take {more.each:,} trials of a scenario, and at most {MAX_TRIALS:,} are planned here."
        )
    asked = FreshTrialsRequest(
        tuple(one.config_id for one in candidates), tuple(one.settings for one in candidates),
        more.scenarios, more.each,
    )  # fmt: skip
    total = more.total * len(candidates)
    return build_fresh_request(asked, title=f"{total} more trials for a decision", purpose=MORE_TRIALS_PURPOSE)


def _find_original_run_id(candidate: Candidate) -> int:
    """Return the run that the trials are planned for, also where its newest ones were planned here."""
    source = RunConfig.objects.values_list("run_id", "run__repeat_of", "run__purpose").get(pk=candidate.config_id)
    return int(source[1] if source[2] == MORE_TRIALS_PURPOSE and source[1] else source[0])


def _list_candidates(page: DecidePage) -> tuple[Candidate, ...]:
    wanted = page.decision.more.assessments if page.decision.more else ()
    by_key = {row.standing.measured.key: row.candidate for row in page.rows}
    return tuple(by_key[one.measured.key] for one in wanted)
