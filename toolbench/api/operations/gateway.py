"""Operations on the gateway: its aliases with their history, and its traces."""

from typing import Any, Literal

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from ninja import Query, Router, Status

from toolbench.api.authentication import LAUNCH, READ, get_user, record
from toolbench.api.documents.figures import SentenceDocument
from toolbench.api.documents.gateway import (
    AliasBody,
    AliasDocument,
    BindingDocument,
    ChangedAliasBody,
    GatewayTraceDetailDocument,
    GatewayTraceListDocument,
    GatewayTraceQuery,
    PromotionBody,
    RollBackBody,
)
from toolbench.api.masking import build_masked_file
from toolbench.api.problems import ProblemError
from toolbench.lab.accounts.audit import Action
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.interchange.traffic.drafts import import_trace
from toolbench.lab.models import AliasBinding, GatewayTrace, ModelAlias
from toolbench.lab.results.decide.promotion import get_promotion_source
from toolbench.lab.results.trace_search import SOURCE_FILTER, search_traces
from toolbench.lab.schedules.canaries import create_canary
from toolbench.lab.schedules.edit import ScheduleSettings
from toolbench.lab.serving.aliases import AliasChoice, AliasRow, list_aliases, promote_config, save_alias
from toolbench.lab.serving.bindings import BindingChange, RollbackError, list_bindings, roll_back
from toolbench.lab.serving.traces import NoDraftError, get_trace_page

router = Router()
# Member of PromotionBody by the name of the field in an error of `promote_config`, where they differ.
_PROMOTION_FIELDS = {"name": "alias"}
_CONFIG_SETTINGS = {"profile", "strategy", "method"}  # members of AliasBody whose defaults do not apply with `config`
# Columns of ModelAlias that AliasDocument has under the same name.
_ALIAS_COLUMNS = ("id", "name", "profile", "strategy", "method", "repairs", "fallbacks", "keep_percent", "keep_bodies")


@router.get("/gateway/aliases", response=list[AliasDocument], auth=READ)
def list_gateway_aliases(request: HttpRequest) -> list[dict[str, Any]]:
    """List the aliases with their settings."""
    return [_build_alias(row) for row in list_aliases()]


@router.post("/gateway/aliases", response={201: AliasDocument}, auth=LAUNCH)
def add_alias(request: HttpRequest, body: AliasBody) -> Status[dict[str, Any]]:
    """Create an alias, which the gateway serves within a second.

    The profile is used even if its pattern does not match the model's name.
    """
    alias = save_alias(_build_choice(body), owner=get_user(request))
    return Status(201, _finish(request, Action.ADDED, alias, ""))


@router.put("/gateway/aliases/{int:alias_id}", response=AliasDocument, auth=LAUNCH)
def change_alias(request: HttpRequest, alias_id: int, body: ChangedAliasBody) -> dict[str, Any]:
    """Replace the settings of an alias.

    If the model, profile, strategy, method or configuration has changed, the alias gets a new binding.
    """
    alias = save_alias(_build_choice(body, body.binding), owner=get_user(request), alias=_get_alias_or_404(alias_id))
    return _finish(request, Action.CHANGED, alias, "")


@router.delete("/gateway/aliases/{int:alias_id}", response={204: None}, auth=LAUNCH)
def remove_alias(request: HttpRequest, alias_id: int) -> Status[None]:
    """Delete an alias with its history. Its traces are kept."""
    alias = _get_alias_or_404(alias_id)
    alias.delete()
    record(request, Action.DELETED, f"alias {alias.name}")
    return Status(204, None)


@router.get("/gateway/aliases/{int:alias_id}/bindings", response=list[BindingDocument], auth=READ)
def list_alias_bindings(request: HttpRequest, alias_id: int) -> list[AliasBinding]:
    """List the newest 50 bindings of an alias, the current one first."""
    return [row.binding for row in list_bindings(_get_alias_or_404(alias_id))]


@router.post("/gateway/aliases/{int:alias_id}/roll-back", response=AliasDocument, auth=LAUNCH)
def roll_back_alias(request: HttpRequest, alias_id: int, body: RollBackBody) -> dict[str, Any]:
    """Give an alias the settings of an earlier binding again.

    409 if the alias has no such binding, has this binding now, or the model of the binding was deleted.
    """
    alias = _get_alias_or_404(alias_id)
    try:
        roll_back(alias, body.binding, who=get_user(request).username)
    except RollbackError as error:
        raise ProblemError(409, f"Nothing was changed. {error}") from error
    return _finish(request, Action.CHANGED, alias, ": rolled back")


@router.post("/gateway/promotions", response={201: AliasDocument}, auth=LAUNCH)
def promote_record(request: HttpRequest, body: PromotionBody) -> Status[dict[str, Any]]:
    """Give an alias the settings that a decision record chose, and create a canary if the body has one."""
    source, user = get_promotion_source(None, body.record), get_user(request)
    if source is None:
        raise Http404(
            f"There is no decision record {body.record}, it chose no configuration, or its model was deleted."
        )
    if body.canary is not None and source.canary_plan is None:
        raise ProblemError(409, f"A canary is not possible. {source.refusal}")
    with transaction.atomic():
        canary = None
        if body.canary is not None and source.canary_plan is not None:
            name = f"Canary of {body.alias}"[:120]
            schedule_settings = ScheduleSettings(name=name, hour_utc=None, **body.canary.model_dump())
            canary = create_canary(source.canary_plan, source.baseline, schedule_settings, owner=user)
        change = BindingChange(
            who=user.username,
            cause=AliasBinding.Cause.PROMOTED,
            decision=body.record,
            canary=canary.pk if canary else None,
            returns_on_alarm=canary is not None and body.returns_on_alarm,
        )
        try:
            alias = promote_config(body.alias, source.config.pk, change, owner=user)
        except InvalidFieldsError as error:
            errors = {_PROMOTION_FIELDS.get(name, name): sentences for name, sentences in error.errors.items()}
            raise InvalidFieldsError(errors) from None
    return Status(201, _finish(request, Action.CHANGED, alias, ": promoted"))


@router.get("/gateway/traces", response=GatewayTraceListDocument, auth=READ)
def list_gateway_traces(request: HttpRequest, query: Query[GatewayTraceQuery]) -> dict[str, Any]:
    """List the traces, or those that match a search, newest first."""
    if not query.q.strip():
        page = get_trace_page(query.alias, query.cursor, query.limit)
        return {"items": page.traces, "next": page.next_before, "text_lag_seconds": 0.0}
    if query.alias or query.cursor:
        raise ProblemError(422, "Give q alone, without alias and cursor. The name of an alias can be a word of q.")
    result = search_traces(f"{SOURCE_FILTER} {query.q}", query.limit)
    return {"items": result.traces, "next": None, "text_lag_seconds": result.text_lag}


@router.get("/gateway/traces/{int:trace_id}", response=GatewayTraceDetailDocument, auth=READ)
def get_gateway_trace(request: HttpRequest, trace_id: int) -> GatewayTrace:
    """Return a trace with the names of its bodies."""
    return _get_trace_or_404(trace_id)


@router.post("/gateway/traces/{int:trace_id}/draft", response=SentenceDocument, auth=LAUNCH)
def make_draft_of_trace(request: HttpRequest, trace_id: int) -> dict[str, str]:
    """Create a draft of a test case from a trace.

    409 if the request failed, or no test case can be built from what was kept of it.
    """
    trace = _get_trace_or_404(trace_id)
    try:
        is_added = import_trace(trace)
    except NoDraftError as error:
        raise ProblemError(409, str(error)) from error
    if is_added:
        record(request, Action.ADDED, f"draft of a test case from trace {trace_id}", "/cases/drafts/")
    return {"sentence": "A draft was made." if is_added else "This request is a draft already."}


@router.get("/gateway/traces/{int:trace_id}/{body}", auth=READ)
def get_gateway_body(
    request: HttpRequest,
    trace_id: int,
    body: Literal[
        "client_request", "client_response", "upstream_request", "upstream_response", "traffic_line", "steps"
    ],
) -> HttpResponse:
    """Return the stored bytes of a body, with secrets masked; 404 if the trace does not have it.

    `client_request` and `client_response` are the exchange with the client, `upstream_request` and `upstream_response`
    are the last exchange with the provider. `traffic_line` is request and answer in the form of recorded traffic.
    `steps` are all exchanges with the provider, as JSON.
    """
    raw = getattr(_get_trace_or_404(trace_id), body)
    if raw is None:
        raise Http404(f"Trace {trace_id} has no body {body}.")
    return build_masked_file(bytes(raw), f"trace-{trace_id}-{body}.bin")


def _build_choice(body: AliasBody, binding: int | None = None) -> AliasChoice:
    """Return the settings of a body.

    Args:
        body: the settings as the client sent them.
        binding: id of the binding that the settings replace; None for a new alias and one without bindings.

    Raises:
        ProblemError: neither a model nor a configuration is named.
    """
    if body.model is None and body.config is None:
        raise ProblemError(422, "Give model, the id of a model, or config, the id of a measured configuration.")
    defaults = _CONFIG_SETTINGS - body.model_fields_set if body.config is not None else set()
    values = body.model_dump(exclude={"binding", "model", "fallbacks", *defaults})
    return AliasChoice(model=body.model or 0, fallbacks=tuple(body.fallbacks), binding=binding, **values)


def _build_alias(row: AliasRow) -> dict[str, Any]:
    """Return the values of an AliasDocument."""
    alias = row.alias
    return {name: getattr(alias, name) for name in _ALIAS_COLUMNS} | {
        "model": alias.model_id,
        "model_name": alias.model.name,
        "provider": alias.model.provider.name,
        "config": alias.config_id,
        "binding": row.binding.pk if row.binding else None,
    }


def _finish(request: HttpRequest, action: Action, alias: ModelAlias, change: str) -> dict[str, Any]:
    """Add a change to the audit list and return the values of the AliasDocument.

    Args:
        request: the request.
        action: what was done with the alias.
        alias: the alias; its current row is read again.
        change: end of the subject in the audit list, such as ": promoted"; "" for none.
    """
    record(request, action, f"alias {alias.name}{change}", f"/gateway/{alias.pk}/")
    current_alias = _get_alias_or_404(alias.pk)
    return _build_alias(AliasRow(current_alias, current_alias.bindings.first()))


def _get_alias_or_404(alias_id: int) -> ModelAlias:
    alias = ModelAlias.objects.select_related("model__provider").filter(pk=alias_id).first()
    if alias is None:
        raise Http404(f"There is no alias {alias_id}.")
    return alias


def _get_trace_or_404(trace_id: int) -> GatewayTrace:
    trace = GatewayTrace.objects.filter(pk=trace_id).first()
    if trace is None:
        raise Http404(f"There is no trace {trace_id}; it may have been deleted because of its age.")
    return trace
