"""Operations on runs: list, plan, launch, read, control and repeat them, and add trials."""

from contextlib import AbstractContextManager
from typing import Any

from django.http import Http404, HttpRequest
from ninja import Query, Router, Status
from ninja.params.functions import Header

from toolbench.api.authentication import LAUNCH, READ, get_user, record
from toolbench.api.documents.figures import AgreedBody, SentenceDocument
from toolbench.api.documents.plans import EstimateDocument, PlanDocument
from toolbench.api.documents.run_requests import (
    AddTrialsBody,
    LabelBody,
    LaunchBody,
    LimitsBody,
    PlanBody,
    RepeatBody,
)
from toolbench.api.documents.runs import (
    FrozenQuery,
    FrozenSettingsDocument,
    RunDetailDocument,
    RunDocument,
    RunListDocument,
    RunPageQuery,
    RunQuery,
    build_config,
)
from toolbench.api.problems import ProblemError
from toolbench.lab.accounts.audit import Action
from toolbench.lab.models import LaunchKey, Run
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.forecast_page import estimate_plan, estimate_remaining
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.planning.statistical_power import compute_power_hint
from toolbench.lab.results.run.frozen_settings import get_frozen_settings
from toolbench.lab.results.run.index import list_runs_before
from toolbench.lab.results.run.page import get_run_page
from toolbench.lab.runs import control, limits
from toolbench.lab.runs.action_checks import RunActionError
from toolbench.lab.runs.bulk import list_deletable_runs
from toolbench.lab.runs.idempotent_launch import MAX_KEY_CHARACTERS, launch_once, use_launch_key
from toolbench.lab.runs.sentences import describe_added, describe_resumed, describe_retried
from toolbench.lab.scenarios.case_sets import expand_set_words

router = Router()
API_PURPOSE = "api"  # Run.purpose of runs that the API launches
# Header Idempotency-Key of a request that launches a run or adds trials; "" for none.
IDEMPOTENCY_KEY = Header(
    "",
    alias="Idempotency-Key",
    max_length=MAX_KEY_CHARACTERS,
    pattern=r"^[!-~]*$",
    description='key that you choose, so that a repeated request changes nothing more; "" for none. 409 if you sent it '
    "with another request, or if its run was deleted.",
)


@router.get("/runs", response=RunListDocument, auth=READ)
def list_runs(request: HttpRequest, query: Query[RunQuery]) -> dict[str, Any]:
    """List runs with their counts and rates, newest first."""
    kind = None if query.kind == "all" else query.kind
    rows = list_runs_before(kind, label=query.label, before=query.cursor, limit=query.limit + 1)
    page_rows = rows[: query.limit]
    items = [
        {
            "run": row.run,
            "models": row.models,
            "counts": row.tally,
            "answered": row.answered,
            "delivered": row.delivered,
        }
        for row in page_rows
    ]
    return {"items": items, "next": page_rows[-1].run.pk if len(rows) > query.limit else None}


@router.post("/runs", response={200: RunDocument, 201: RunDocument}, auth=LAUNCH)
def launch_run(request: HttpRequest, body: LaunchBody, idempotency_key: str = IDEMPOTENCY_KEY) -> Status[Run]:
    """Launch a run. A repeated request with the same header Idempotency-Key gets 200 and the same run."""
    run_request = _build_request(body)
    values = body.model_dump(mode="json", exclude={"agreed"})
    run, is_new = launch_once(
        run_request, owner=get_user(request), key=idempotency_key, body=values, confirmed_requests=body.agreed
    )
    if is_new:
        record(request, Action.LAUNCHED, f"run {run.pk}", f"/runs/{run.pk}/")
    return Status(201 if is_new else 200, run)


@router.post("/runs/plan", response=PlanDocument, auth=READ)
def plan_run(request: HttpRequest, body: PlanBody) -> dict[str, Any]:
    """Plan and estimate a run. Nothing is saved, and no request is sent."""
    run_request = _build_request(body)
    plan = build_plan(run_request)
    power = compute_power_hint(plan, None) if plan.cells else None
    names = ("configs", "skipped", "trials", "least_trials", "least_requests", "most_requests", "paid_requests")
    return {name: getattr(plan, name) for name in names} | {
        "cells": len(plan.cells),
        "agreed": plan.max_paid_requests if plan.needs_confirmation else 0,
        "estimate": estimate_plan(plan, run_request),
        "detectable_points": power.detectable_points if power else None,
    }


@router.get("/runs/{int:run_id}", response=RunDetailDocument, auth=READ)
def get_run(request: HttpRequest, run_id: int, query: Query[RunPageQuery]) -> dict[str, Any]:
    """Return a run with its failures and a page of its configurations. If you poll it, send the last ETag."""
    get_run_or_404(run_id)
    page = get_run_page(run_id, query.page)
    names = ("run", "live", "retryable", "resumable", "page", "pages")
    return {name: getattr(page, name) for name in names} | {
        "counts": page.tally,
        "configs": [build_config(row) for row in page.config_rows],
        "failures": page.groups,
        "seconds_left": page.pace.seconds_left,
    }


@router.patch("/runs/{int:run_id}", response=RunDocument, auth=LAUNCH)
def label_run(request: HttpRequest, run_id: int, body: LabelBody) -> Run:
    """Set the label of a run."""
    get_run_or_404(run_id)
    control.set_label(run_id, body.label)
    return _finish(request, run_id, "label")


@router.delete("/runs/{int:run_id}", response={204: None}, auth=LAUNCH)
def delete_run(request: HttpRequest, run_id: int) -> Status[None]:
    """Delete a run that has ended."""
    get_run_or_404(run_id)
    _run_action(list_deletable_runs, [run_id])
    control.delete_run(run_id)
    record(request, Action.DELETED, f"run {run_id}")
    return Status(204, None)


@router.get("/runs/{int:run_id}/estimate", response=EstimateDocument | None, auth=READ)
def estimate_run(request: HttpRequest, run_id: int) -> Any:
    """Estimate the open trials of a run.

    Null if the run is neither running nor paused, has no open trials, or has a cell with open trials but without
    similar earlier trials.
    """
    return estimate_remaining(get_run_or_404(run_id))


@router.get("/runs/{int:run_id}/settings", response=FrozenSettingsDocument, auth=READ)
def read_run_settings(request: HttpRequest, run_id: int, query: Query[FrozenQuery]) -> dict[str, Any]:
    """Return the frozen settings of a configuration; without `config`, of the first one."""
    run = get_run_or_404(run_id)
    if query.config is not None and not run.configs.filter(pk=query.config).exists():
        raise Http404(f"Run {run_id} has no configuration {query.config}.")
    settings = get_frozen_settings(run_id, config=str(query.config or ""), scenario=query.scenario)
    if settings is None:
        raise Http404(f"Run {run_id} has no configuration.")
    names = ("scenario", "chosen", "defaults")
    return {name: getattr(settings, name) for name in names} | {"config": settings.config.pk}


@router.post("/runs/{int:run_id}/pause", response=RunDocument, auth=LAUNCH)
def pause_run(request: HttpRequest, run_id: int) -> Run:
    """Pause a run: running trials finish, and no new one starts."""
    get_run_or_404(run_id)
    _run_action(control.pause_run, run_id, f"The user {get_user(request).username} paused the run.")
    return _finish(request, run_id, "pause")


@router.post("/runs/{int:run_id}/resume", response=RunDocument, auth=LAUNCH)
def resume_run(request: HttpRequest, run_id: int) -> Run:
    """Resume a paused run; 409 if one of its limits is reached."""
    get_run_or_404(run_id)
    _run_action(control.resume_run, run_id)
    return _finish(request, run_id, "resume")


@router.post("/runs/{int:run_id}/cancel", response=RunDocument, auth=LAUNCH)
def cancel_run(request: HttpRequest, run_id: int) -> Run:
    """Cancel a running or paused run: requests in flight are dropped, and finished trials are kept."""
    get_run_or_404(run_id)
    _run_action(control.cancel_run, run_id)
    return _finish(request, run_id, "cancel")


@router.post("/runs/{int:run_id}/retry", response=SentenceDocument, auth=LAUNCH)
def retry_run(request: HttpRequest, run_id: int, body: AgreedBody) -> dict[str, str]:
    """Queue all trials with an infrastructure error again, except those of deleted providers; 409 if there are none."""
    get_run_or_404(run_id)
    count = _run_action(control.retry_errored_trials, run_id, confirmed_requests=body.agreed)
    _finish(request, run_id, "retry")
    return {"sentence": describe_retried(count)}


@router.post("/runs/{int:run_id}/resume-cancelled", response=SentenceDocument, auth=LAUNCH)
def resume_cancelled_run(request: HttpRequest, run_id: int, body: AgreedBody) -> dict[str, str]:
    """Queue the cancelled trials of an ended run again; 409 if there are none.

    Trials that were added manually and those of deleted providers stay cancelled.
    """
    get_run_or_404(run_id)
    count = _run_action(control.resume_cancelled_run, run_id, confirmed_requests=body.agreed)
    _finish(request, run_id, "resume-cancelled")
    return {"sentence": describe_resumed(count)}


@router.post("/runs/{int:run_id}/limits", response=RunDocument, auth=LAUNCH)
def raise_limits(request: HttpRequest, run_id: int, body: LimitsBody) -> Run:
    """Set both limits of a paused run and resume it."""
    get_run_or_404(run_id)
    new_limits = {"request_cap": body.request_cap, "token_cap": body.token_cap}
    _run_action(limits.set_limits_and_resume, run_id, confirmed_requests=body.agreed, **new_limits)
    return _finish(request, run_id, "raise")


@router.post("/runs/{int:run_id}/cells/{int:cell_id}/trials", response=SentenceDocument, auth=LAUNCH)
def add_trials(
    request: HttpRequest, run_id: int, cell_id: int, body: AddTrialsBody, idempotency_key: str = IDEMPOTENCY_KEY
) -> dict[str, str]:
    """Add trials to a cell; they are marked as added manually.

    A repeated request with the same header Idempotency-Key adds nothing and gets the same answer.
    """
    run = get_run_or_404(run_id)
    if not run.cells.filter(pk=cell_id).exists():
        raise Http404(f"Run {run_id} has no cell {cell_id}.")
    with _use_key(request, idempotency_key, body) as key:
        if key.run is None:
            _run_action(control.add_trials, run_id, cell_id, body.count, confirmed_requests=body.agreed)
            key.run = _finish(request, run_id, "add")
    return {"sentence": describe_added(body.count)}


@router.post("/runs/{int:run_id}/repeat", response={200: RunDocument, 201: RunDocument}, auth=LAUNCH)
def repeat_run(
    request: HttpRequest, run_id: int, body: RepeatBody, idempotency_key: str = IDEMPOTENCY_KEY
) -> Status[Run]:
    """Launch a run again with its frozen settings.

    A repeated request with the same header Idempotency-Key gets 200 and the same repeat.
    """
    get_run_or_404(run_id)
    repeat = control.start_repeat if body.kind == "same" else control.start_noise_repeat
    with _use_key(request, idempotency_key, body) as key:
        if key.run is not None:
            return Status(200, key.run)
        run = key.run = _run_action(repeat, run_id, owner=get_user(request), confirmed_requests=body.agreed)
        record(request, Action.LAUNCHED, f"run {run.pk}", f"/runs/{run.pk}/")
    return Status(201, run)


def _use_key(request: HttpRequest, key: str, body: AgreedBody) -> AbstractContextManager[LaunchKey]:
    """Return the context of `use_launch_key`, which compares the path and the body without `agreed`."""
    values = {"path": request.path, "body": body.model_dump(mode="json", exclude={"agreed"})}
    return use_launch_key(get_user(request), key, values)


def _build_request(body: PlanBody) -> RunRequest:
    values = body.model_dump(exclude={"agreed"}) | {"purpose": API_PURPOSE}
    values["scenarios"] = list(expand_set_words(body.scenarios))
    return RunRequest.from_json(values)


def get_run_or_404(run_id: int) -> Run:
    """Return a run with its owner.

    Raises:
        Http404: there is no such run, or it was deleted.
    """
    run = Run.objects.select_related("owner").filter(pk=run_id, deleted_at=None).first()
    if run is None:
        raise Http404(f"There is no run {run_id}; it may have been deleted.")
    return run


def _run_action(action: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function that changes runs or checks whether it can change them, and return its result.

    Raises:
        ProblemError: the action is not possible now (409).
    """
    try:
        return action(*args, **kwargs)
    except RunActionError as error:
        raise ProblemError(409, str(error)) from error


def _finish(request: HttpRequest, run_id: int, action: str) -> Run:
    """Add the named action to the audit list and return the changed run."""
    record(request, Action.CHANGED, f"run {run_id}: {action}", f"/runs/{run_id}/")
    return get_run_or_404(run_id)
