"""Operations on runs: list, read, plan, launch, control, repeat, judge again, download."""

from typing import Any

from django.http import Http404, HttpRequest
from ninja import Query, Router, Status
from ninja.params.functions import Header

from toolbench.api.authentication import LAUNCH, READ, get_user, record
from toolbench.api.documents.figures import AgreedBody, SentenceDocument
from toolbench.api.documents.runs import (
    AddTrialsBody,
    EstimateDocument,
    FrozenQuery,
    FrozenSettingsDocument,
    LabelBody,
    LaunchBody,
    LimitsBody,
    PlanBody,
    PlanDocument,
    RepeatBody,
    RunDetailDocument,
    RunDocument,
    RunListDocument,
    RunQuery,
    build_config,
)
from toolbench.api.problems import ProblemError
from toolbench.lab.accounts.audit import Action
from toolbench.lab.models import Run
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.forecast_page import estimate_plan, estimate_remaining
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.planning.statistical_power import get_power_hint
from toolbench.lab.results.run.frozen_settings import get_frozen_settings
from toolbench.lab.results.run.index import list_runs_before
from toolbench.lab.results.run.page import get_run_page
from toolbench.lab.runs import control
from toolbench.lab.runs.bulk import list_deletable_runs
from toolbench.lab.runs.idempotent_launch import MAX_KEY_CHARACTERS, LaunchKeyError, launch_once
from toolbench.lab.scenarios.case_sets import expand_set_words

router = Router()
PURPOSE = "api"
KEY = Header("", max_length=MAX_KEY_CHARACTERS, pattern=r"^[!-~]*$")


@router.get("/runs", response=RunListDocument, auth=READ)
def list_runs(request: HttpRequest, query: Query[RunQuery]) -> dict[str, Any]:
    """List runs with their sums, newest first."""
    kind = None if query.kind == "all" else query.kind
    rows = list_runs_before(kind, label=query.label, before=query.cursor, limit=query.limit + 1)
    shown = rows[: query.limit]
    items = [
        {
            "run": row.run,
            "models": row.models,
            "counts": row.tally,
            "answered": row.answered,
            "delivered": row.delivered,
        }
        for row in shown
    ]
    return {"items": items, "next": shown[-1].run.pk if len(rows) > query.limit else None}


@router.post("/runs", response={200: RunDocument, 201: RunDocument}, auth=LAUNCH)
def launch_run(request: HttpRequest, body: LaunchBody, idempotency_key: str = KEY) -> Status[Run]:
    """Launch a run. With the header Idempotency-Key, the same request sent again answers 200 with the same run."""
    run_request = _build_request(body)
    try:
        sent = body.model_dump(mode="json", exclude={"agreed"})
        run, is_new = launch_once(
            run_request, owner=get_user(request), key=idempotency_key, body=sent, agreed=body.agreed
        )
    except LaunchKeyError as used:
        raise ProblemError(409, str(used)) from used
    if is_new:
        record(request, Action.LAUNCHED, f"run {run.pk}", f"/runs/{run.pk}/")
    return Status(201 if is_new else 200, run)


@router.post("/runs/plan", response=PlanDocument, auth=READ)
def plan_run(request: HttpRequest, body: PlanBody) -> dict[str, Any]:
    """Plan a run and estimate it (dry run): nothing is written or sent."""
    run_request = _build_request(body)
    plan = build_plan(run_request)
    power = get_power_hint(plan, None) if plan.cells else None
    names = ("configs", "skipped", "trials", "least_trials", "least_requests", "most_requests", "paid_requests")
    return {name: getattr(plan, name) for name in names} | {
        "cells": len(plan.cells),
        "agreed": plan.most_paid if plan.needs_confirmation else 0,
        "estimate": estimate_plan(plan, run_request),
        "detectable_points": power.least if power else None,
    }


@router.get("/runs/{int:run_id}", response=RunDetailDocument, auth=READ)
def get_run(request: HttpRequest, run_id: int) -> dict[str, Any]:
    """Return a run with its configurations, cells and failures. Poll it with its ETag."""
    _get_run_or_404(run_id)
    page = get_run_page(run_id)
    names = ("run", "live", "retryable", "resumable")
    return {name: getattr(page, name) for name in names} | {
        "counts": page.tally,
        "configs": [build_config(row) for row in page.lines],
        "failures": page.groups,
        "seconds_left": page.pace.left,
    }


@router.patch("/runs/{int:run_id}", response=RunDocument, auth=LAUNCH)
def label_run(request: HttpRequest, run_id: int, body: LabelBody) -> Run:
    """Set the label of a run."""
    _get_run_or_404(run_id)
    control.set_label(run_id, body.label)
    return _finish(request, run_id, "label")


@router.delete("/runs/{int:run_id}", response={204: None}, auth=LAUNCH)
def delete_run(request: HttpRequest, run_id: int) -> Status[None]:
    """Delete a run that has ended."""
    _get_run_or_404(run_id)
    _act(list_deletable_runs, [run_id])
    control.delete_run(run_id)
    record(request, Action.DELETED, f"run {run_id}")
    return Status(204, None)


@router.get("/runs/{int:run_id}/estimate", response=EstimateDocument | None, auth=READ)
def estimate_run(request: HttpRequest, run_id: int) -> Any:
    """Estimate the open trials of a run; null where none is open or nothing is known."""
    _get_run_or_404(run_id)
    return estimate_remaining(run_id)


@router.get("/runs/{int:run_id}/settings", response=FrozenSettingsDocument, auth=READ)
def read_run_settings(request: HttpRequest, run_id: int, query: Query[FrozenQuery]) -> dict[str, Any]:
    """Return the frozen settings of a configuration; without `config`, of the first one."""
    run = _get_run_or_404(run_id)
    if query.config is not None and not run.configs.filter(pk=query.config).exists():
        raise Http404(f"Run {run_id} has no configuration {query.config}.")
    found = get_frozen_settings(run_id, config=str(query.config or ""), scenario=query.scenario)
    if found is None:
        raise Http404(f"Run {run_id} has no configuration.")
    names = ("scenario", "chosen", "defaults")
    return {name: getattr(found, name) for name in names} | {"config": found.config.pk}


@router.post("/runs/{int:run_id}/pause", response=RunDocument, auth=LAUNCH)
def pause_run(request: HttpRequest, run_id: int) -> Run:
    """Pause a run: trials in flight finish, no new one starts."""
    _get_run_or_404(run_id)
    _act(control.pause_run, run_id, f"by {get_user(request).username}")
    return _finish(request, run_id, "pause")


@router.post("/runs/{int:run_id}/resume", response=RunDocument, auth=LAUNCH)
def resume_run(request: HttpRequest, run_id: int) -> Run:
    """Resume a paused run."""
    _get_run_or_404(run_id)
    _act(control.resume_run, run_id)
    return _finish(request, run_id, "resume")


@router.post("/runs/{int:run_id}/cancel", response=RunDocument, auth=LAUNCH)
def cancel_run(request: HttpRequest, run_id: int) -> Run:
    """Cancel a run: requests in flight are dropped, finished trials stay."""
    _get_run_or_404(run_id)
    _act(control.cancel_run, run_id)
    return _finish(request, run_id, "cancel")


@router.post("/runs/{int:run_id}/retry", response=SentenceDocument, auth=LAUNCH)
def retry_run(request: HttpRequest, run_id: int, body: AgreedBody) -> dict[str, str]:
    """Queue all trials again that ended with an infrastructure error."""
    _get_run_or_404(run_id)
    count = _act(control.retry_errored_trials, run_id, agreed=body.agreed)
    _finish(request, run_id, "retry")
    return {"sentence": f"{count} trials that the infrastructure stopped are queued again."}


@router.post("/runs/{int:run_id}/resume-cancelled", response=SentenceDocument, auth=LAUNCH)
def resume_cancelled_run(request: HttpRequest, run_id: int, body: AgreedBody) -> dict[str, str]:
    """Queue the planned trials again that were cancelled."""
    _get_run_or_404(run_id)
    count = _act(control.resume_cancelled_run, run_id, agreed=body.agreed)
    _finish(request, run_id, "resume-cancelled")
    return {"sentence": f"{count} cancelled trials are queued again. What they sent before stays counted."}


@router.post("/runs/{int:run_id}/limits", response=RunDocument, auth=LAUNCH)
def raise_limits(request: HttpRequest, run_id: int, body: LimitsBody) -> Run:
    """Set both limits of a paused run and resume it."""
    _get_run_or_404(run_id)
    _act(control.raise_caps_and_resume, run_id, request_cap=body.request_cap, token_cap=body.token_cap)
    return _finish(request, run_id, "raise")


@router.post("/runs/{int:run_id}/cells/{int:cell_id}/trials", response=SentenceDocument, auth=LAUNCH)
def add_trials(request: HttpRequest, run_id: int, cell_id: int, body: AddTrialsBody) -> dict[str, str]:
    """Add trials to a cell; they are marked as added by hand."""
    run = _get_run_or_404(run_id)
    if not run.cells.filter(pk=cell_id).exists():
        raise Http404(f"Run {run_id} has no cell {cell_id}.")
    count = _act(control.add_trials, run_id, cell_id, body.count, agreed=body.agreed)
    _finish(request, run_id, "add")
    return {"sentence": f"{count} trials added; they are marked as added by hand."}


@router.post("/runs/{int:run_id}/repeat", response={201: RunDocument}, auth=LAUNCH)
def repeat_run(request: HttpRequest, run_id: int, body: RepeatBody) -> Status[Run]:
    """Launch a run again with its frozen settings."""
    _get_run_or_404(run_id)
    repeat = control.start_repeat if body.kind == "same" else control.start_noise_repeat
    run = _act(repeat, run_id, owner=get_user(request), agreed=body.agreed)
    record(request, Action.LAUNCHED, f"run {run.pk}", f"/runs/{run.pk}/")
    return Status(201, run)


def _build_request(body: PlanBody) -> RunRequest:
    given = body.model_dump(exclude={"agreed"}) | {"purpose": PURPOSE}
    given["scenarios"] = list(expand_set_words(body.scenarios))
    return RunRequest.from_json(given)


def _get_run_or_404(run_id: int) -> Run:
    run = Run.objects.select_related("owner").filter(pk=run_id, deleted_at=None).first()
    if run is None:
        raise Http404(f"There is no run {run_id}; it may have been deleted.")
    return run


def _act(action: Any, *args: Any, **named: Any) -> Any:
    """Return the result of an action on a run; one that is not possible now is a problem."""
    try:
        return action(*args, **named)
    except control.RunActionError as refused:
        raise ProblemError(409, str(refused)) from refused


def _finish(request: HttpRequest, run_id: int, action: str) -> Run:
    """Record an action and return the run as it is now."""
    record(request, Action.CHANGED, f"run {run_id}: {action}", f"/runs/{run_id}/")
    return _get_run_or_404(run_id)
