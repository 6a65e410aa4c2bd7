"""Operations on trials and steps: lists, details, stored bytes, notes and human verdicts."""

from typing import Any, Literal

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from ninja import Query, Router

from toolbench.api.authentication import LAUNCH, READ, get_user, record
from toolbench.api.documents.figures import SentenceDocument
from toolbench.api.documents.trials import (
    AnnotationBody,
    StepDetailDocument,
    TrialDetailDocument,
    TrialListDocument,
    TrialListQuery,
    VerdictBody,
    build_step,
    build_trial,
)
from toolbench.api.masking import build_masked_file
from toolbench.api.problems import FieldProblem, ProblemError, build_field_problem, find_unreadable_problem
from toolbench.lab.accounts.audit import Action
from toolbench.lab.models import Step, Trial
from toolbench.lab.results.trial.annotate import annotate
from toolbench.lab.results.trial.bodies.bytes_page import get_bytes
from toolbench.lab.results.trial.bodies.curl import get_curl
from toolbench.lab.results.trial.human_verdicts import save_human_verdict
from toolbench.lab.results.trial.page import MAX_STEPS, TrialPage, get_trial_page
from toolbench.lab.results.trial.page_query import STEPS
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.keyset import CursorError, get_trials_after
from toolbench.lab.traces.step_facts import load_details

router = Router()
STEP_NOT_FOUND = "There is no such step; its run may have been deleted."


@router.get("/trials", response=TrialListDocument, auth=READ)
def list_trials(request: HttpRequest, query: Query[TrialListQuery]) -> Any:
    """List the trials that match the filter. A cursor stays valid while trials are added.

    All matching trials are listed if you name runs, cells or configurations, or send `sort=order`. Otherwise only the
    newest 10,000 are listed.
    """
    parameters: QueryDict = request.GET.copy()
    trial_filter = TrialFilter.from_query(parameters)
    if problem := find_unreadable_problem(trial_filter.ignored):
        return problem
    try:
        page = get_trials_after(trial_filter, query.cursor, query.limit)
    except CursorError as error:
        return build_field_problem([FieldProblem(field="cursor", message=str(error))])
    return {"items": [build_trial(trial) for trial in page.trials], "next": page.cursor, "limited": page.is_limited}


@router.get("/trials/{int:trial_id}", response=TrialDetailDocument, auth=READ)
def get_trial(request: HttpRequest, trial_id: int) -> dict[str, Any]:
    """Return a trial with its verdict and up to 400 steps of its last execution."""
    try:
        page = get_trial_page(trial_id, TrialFilter(), view=STEPS)
    except Trial.DoesNotExist:
        raise _build_trial_not_found(trial_id) from None
    return _build_trial_detail(page)


@router.patch("/trials/{int:trial_id}", response=SentenceDocument, auth=LAUNCH)
def annotate_trial(request: HttpRequest, trial_id: int, body: AnnotationBody) -> dict[str, str]:
    """Set the label and the note of a trial."""
    if not annotate(trial_id, label=body.label, note=body.note):
        raise _build_trial_not_found(trial_id)
    record(request, Action.CHANGED, f"note of trial {trial_id}", f"/trials/{trial_id}/")
    return {"sentence": "Label and note are saved."}


@router.post("/trials/{int:trial_id}/verdict", response=SentenceDocument, auth=LAUNCH)
def judge_trial(request: HttpRequest, trial_id: int, body: VerdictBody) -> dict[str, str]:
    """Save a human verdict. The judge's verdict and all counts stay unchanged."""
    try:
        save_human_verdict(trial_id, get_user(request), verdict=body.verdict, reason=body.reason)
    except Trial.DoesNotExist:
        raise _build_trial_not_found(trial_id) from None
    record(request, Action.CHANGED, f"human verdict on trial {trial_id}", f"/trials/{trial_id}/")
    return {"sentence": "Verdict saved. The judge's verdict and all counts stay as they are."}


@router.get("/steps/{int:step_id}", response=StepDetailDocument, auth=READ)
def get_step(request: HttpRequest, step_id: int) -> dict[str, Any]:
    """Return a step with its details."""
    try:
        step = Step.objects.select_related("body").get(pk=step_id, trial__run__deleted_at=None)
    except Step.DoesNotExist:
        raise ProblemError(404, STEP_NOT_FOUND) from None
    details = load_details(step.body.facts) if hasattr(step, "body") else {}
    return {"step": build_step(step), "trial": step.trial_id, "details": details}


@router.get("/steps/{int:step_id}/{side}", auth=READ)
def get_step_bytes(request: HttpRequest, step_id: int, side: Literal["request", "response", "curl"]) -> HttpResponse:
    """Return the stored bytes of a request or response, or the request as a curl command; secrets are masked."""
    try:
        if side == "curl":
            return build_masked_file(get_curl(step_id), f"step-{step_id}.sh")
        step, raw = get_bytes(step_id, side)
    except Step.DoesNotExist:
        raise ProblemError(404, STEP_NOT_FOUND) from None
    return build_masked_file(raw, f"trial-{step.trial_id}-step-{step.ordinal}-{side}.bin")


def _build_trial_not_found(trial_id: int) -> Http404:
    return Http404(f"There is no trial {trial_id}; its run may have been deleted.")


def _build_trial_detail(page: TrialPage) -> dict[str, Any]:
    """Return the values of a TrialDetailDocument."""
    trial = page.trial
    steps = list(Step.objects.filter(trial=trial, execution=trial.execution).order_by("ordinal")[:MAX_STEPS])
    return {
        "trial": build_trial(trial),
        "headline": page.headline,
        "final_text": page.final_text,
        "note": trial.note,
        "verdict": trial.verdict,
        "causes": trial.causes,
        "human_verdicts": page.human_verdicts,
        "steps": [build_step(step) for step in steps],
        "steps_truncated": page.steps_truncated,
        "earlier": {execution.execution: execution.steps for execution in page.earlier},
    }
