"""More trials for an open decision: a run of exactly the trials that the decision page names.

They are new trials in a run of their own, with the same scenarios and settings, and the decision counts them. Because
they are planned after seeing results, a leader that has some must be confirmed
(docs/decisions/061-rules-of-a-decision.md).
"""

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
    """Trials that the decision page offers to plan.

    Attributes:
        labels: the configurations that get these trials.
        trials: trials of each of `scenarios`, for each configuration.
        request: None where the launch would be refused.
        refusal: the reason of the refusal; empty if there is a request.
        shown: hash of this plan and its measurements, so that no other plan is launched in its place.
    """

    labels: tuple[str, ...]
    trials: int
    scenarios: tuple[str, ...]
    request: RunRequest | None
    refusal: str
    shown: str

    @property
    def total(self) -> int:
        """Return the number of trials over all configurations and scenarios."""
        return self.trials * len(self.scenarios) * len(self.labels)


def get_missing_trials_plan(page: DecidePage) -> MissingTrialsPlan | None:
    """Return the plan that the page offers; None where more trials would not decide or trials are pending."""
    more, candidates = page.decision.more, _list_candidates(page)
    if more is None or any(candidate.pending_trials for candidate in candidates):
        return None
    labels = tuple(candidate.measured.label for candidate in candidates)
    measured = [(candidate.measured.key, candidate.measured.tried) for candidate in candidates]
    shown = hashlib.sha256(json.dumps([measured, more.scenarios, more.per_scenario]).encode()).hexdigest()
    request, refusal = None, ""
    try:
        request = _build_request(candidates, more)
    except (FreshTrialsError, LaunchError) as refused:
        refusal = str(refused)
    return MissingTrialsPlan(labels, more.per_scenario, more.scenarios, request, refusal, shown)


def launch_missing_trials(query: DecideQuery, *, owner: AbstractBaseUser | None, shown: str, agreed: int = 0) -> Run:
    """Launch the missing trials of the decision with a new seed, if they are still those of the plan `shown`.

    Args:
        query: the decision.
        owner: user that the run belongs to, or None.
        shown: hash of the plan that the user has seen.
        agreed: number of paid requests that the user has confirmed.

    Raises:
        FreshTrialsError: no trials are missing, others are missing than shown, or the same settings cannot be tried.
        LaunchError: the plan cannot be launched.
        PaidRequestsUnconfirmedError: more paid requests may be sent than without confirmation and than `agreed`.
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
    if more.per_scenario > MAX_TRIALS:
        raise FreshTrialsError(
            f"It would take {more.per_scenario:,} trials of a scenario, and at most {MAX_TRIALS:,} are planned here."
        )
    trials_request = FreshTrialsRequest(
        tuple(candidate.config_id for candidate in candidates), tuple(candidate.settings for candidate in candidates),
        more.scenarios, more.per_scenario,
    )  # fmt: skip
    total = more.total * len(candidates)
    return build_fresh_request(trials_request, title=f"{total} more trials for a decision", purpose=MORE_TRIALS_PURPOSE)


def _find_original_run_id(candidate: Candidate) -> int:
    """Return the run that the trials are planned for, even if the newest configuration was planned by this page."""
    source = RunConfig.objects.values_list("run_id", "run__repeat_of", "run__purpose").get(pk=candidate.config_id)
    return int(source[1] if source[2] == MORE_TRIALS_PURPOSE and source[1] else source[0])


def _list_candidates(page: DecidePage) -> tuple[Candidate, ...]:
    assessments = page.decision.more.assessments if page.decision.more else ()
    by_key = {row.standing.measured.key: row.candidate for row in page.rows}
    return tuple(by_key[assessment.measured.key] for assessment in assessments)
