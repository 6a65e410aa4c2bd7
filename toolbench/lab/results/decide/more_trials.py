"""Missing trials of an open decision: the plan that the decision page offers, and its launch.

Missing trials are a new run with the settings of the candidates, and the decision counts them. A leader with such
trials must be confirmed, because they were planned after results were seen (docs/decisions/061-rules-of-a-decision.md).
"""

import hashlib
import json
from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser
from django.db import connection, transaction

from toolbench.evals.decisions.choice import AdditionalTrials
from toolbench.lab.metrics.pools import MORE_TRIALS_PURPOSE
from toolbench.lab.models import Run, RunConfig
from toolbench.lab.planning.run_request import MAX_CELL_TRIALS, RunRequest
from toolbench.lab.results.decide.candidates import Candidate
from toolbench.lab.results.decide.new_trials import (
    NewTrialsError,
    NewTrialsRequest,
    build_new_trials_request,
)
from toolbench.lab.results.decide.page import DecidePage, get_decide_page
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.runs.launch import launch

_PLAN_LOCK_ID = 7_204_311  # of the advisory lock that is held while a plan is checked and launched


@dataclass(frozen=True, slots=True)
class MissingTrialsPlan:
    """Plan of the additional trials with which the rule could reach a decision.

    Attributes:
        labels: labels of the candidates that get the trials.
        trials: number of trials of each candidate in each of `scenarios`.
        request: request of the run; None if it cannot be launched.
        refusal: reason why the run cannot be launched; "" if it can.
        shown: hash of the plan and of the numbers of trials that it is based on. The launch form contains the hash, and
            the launch fails if the plan has changed since the form was shown.
    """

    labels: tuple[str, ...]
    trials: int
    scenarios: tuple[str, ...]
    request: RunRequest | None
    refusal: str
    shown: str

    @property
    def total(self) -> int:
        """Return the number of trials over all candidates and scenarios."""
        return self.trials * len(self.scenarios) * len(self.labels)


def get_missing_trials_plan(page: DecidePage) -> MissingTrialsPlan | None:
    """Return the plan that the page offers.

    Returns:
        The plan; None if no trials are needed, if no number of trials would help, or if trials of the candidates that
        need more are queued or running.
    """
    more, candidates = page.decision.more, _list_candidates(page)
    if more is None or any(candidate.pending_trials for candidate in candidates):
        return None
    labels = tuple(candidate.measured.label for candidate in candidates)
    measured = [(candidate.measured.key, candidate.measured.tried) for candidate in candidates]
    shown = hashlib.sha256(json.dumps([measured, more.scenarios, more.per_scenario]).encode()).hexdigest()
    request, refusal = None, ""
    try:
        request = _build_request(page.query, candidates, more)
    except NewTrialsError as refused:
        refusal = str(refused)
    return MissingTrialsPlan(labels, more.per_scenario, more.scenarios, request, refusal, shown)


def launch_missing_trials(
    query: DecideQuery, *, owner: AbstractBaseUser | None, shown: str, confirmed_requests: int = 0
) -> Run:
    """Launch the missing trials of the decision with a new seed, if the plan is still the one that was shown.

    Args:
        query: the query of the decision page.
        owner: user that the run belongs to, or None.
        shown: `MissingTrialsPlan.shown` of the plan that the user has seen.
        confirmed_requests: number of paid requests that the user has confirmed.

    Raises:
        NewTrialsError: no trials are missing or they are in progress, the plan has changed, or it has no request.
        LaunchError: the plan cannot be launched.
        PaidRequestsUnconfirmedError: the run may send more paid requests than `confirmed_requests`, and than are
            allowed without confirmation.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_PLAN_LOCK_ID])
        page = get_decide_page(query)
        request = _check_shown_plan(get_missing_trials_plan(page), shown)
        run = launch(request, owner=owner, confirmed_requests=confirmed_requests)
        # A decision over named runs counts a run of missing trials if its `repeat_of` is a named run.
        Run.objects.filter(pk=run.pk).update(repeat_of=_find_original_run_id(_list_candidates(page)[0]))
    return run


def _check_shown_plan(plan: MissingTrialsPlan | None, shown: str) -> RunRequest:
    """Return the request of the plan.

    Raises:
        NewTrialsError: there is no plan, the plan cannot be launched, or it is not the one that was shown.
    """
    if plan is None:
        raise NewTrialsError(
            "No trials are missing now: the decision has changed, or its trials are still running or queued."
        )
    if plan.request is None:
        raise NewTrialsError(plan.refusal)
    if plan.shown != shown:
        raise NewTrialsError("Results have changed since this page was shown. Read the decision again.")
    return plan.request


def _build_request(query: DecideQuery, candidates: tuple[Candidate, ...], more: AdditionalTrials) -> RunRequest:
    """Return the request of the run.

    Raises:
        NewTrialsError: the decision would not count the run, there are too many trials, or the same settings cannot be
            tried.
    """
    if query.chosen.excludes_new_runs:
        raise NewTrialsError(
            "This address counts no new runs: it ends at a past day or at a run. Remove that limit to plan more trials."
        )
    if more.per_scenario > MAX_CELL_TRIALS:
        raise NewTrialsError(
            f"{more.per_scenario:,} trials of a scenario are missing; at most {MAX_CELL_TRIALS:,} can be planned here."
        )
    trials_request = NewTrialsRequest(
        config_ids=tuple(candidate.config_id for candidate in candidates),
        policy_hashes=tuple(candidate.policy_hash for candidate in candidates),
        scenarios=more.scenarios,
        trials=more.per_scenario,
    )
    title = f"{more.total * len(candidates)} more trials for a decision"
    return build_new_trials_request(trials_request, title=title, purpose=MORE_TRIALS_PURPOSE)


def _find_original_run_id(candidate: Candidate) -> int:
    """Return the id of the run of the candidate's newest configuration.

    If this run has missing trials of an earlier run, return the id of the earlier run instead.
    """
    columns = ("run_id", "run__repeat_of", "run__purpose")
    run_id, original_id, purpose = RunConfig.objects.values_list(*columns).get(pk=candidate.config_id)
    return int(original_id if purpose == MORE_TRIALS_PURPOSE and original_id else run_id)


def _list_candidates(page: DecidePage) -> tuple[Candidate, ...]:
    """Return the candidates that need more trials."""
    assessments = page.decision.more.assessments if page.decision.more else ()
    by_key = {row.assessment.measured.key: row.candidate for row in page.rows}
    return tuple(by_key[assessment.measured.key] for assessment in assessments)
