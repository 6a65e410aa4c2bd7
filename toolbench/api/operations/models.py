"""Operations on models and probes."""

from typing import Annotated, Any, Literal

from django.http import Http404, HttpRequest
from django.template.defaultfilters import pluralize
from ninja import Query, Router, Status
from pydantic import Field

from toolbench.api.authentication import LAUNCH, READ, get_user, record
from toolbench.api.documents.described import Schema
from toolbench.api.documents.figures import AgreedBody, BodySchema, Id, QuerySchema, SentenceDocument
from toolbench.api.problems import ProblemError
from toolbench.engine.types import JsonObject
from toolbench.lab.accounts.audit import Action
from toolbench.lab.endpoints.adopt_preset import NothingToAdoptError, adopt_preset
from toolbench.lab.endpoints.canonical_models import MAX_NAME_CHARS, set_canonical_name
from toolbench.lab.endpoints.probe_job import queue_probe, queue_probes
from toolbench.lab.endpoints.probe_page import ProbePage, get_probe_page
from toolbench.lab.endpoints.refused_parameters import adopt_omissions
from toolbench.lab.endpoints.setup_pages import ModelRow, build_model_rows, get_models
from toolbench.lab.library.model_settings import get_model_settings, save_model_settings
from toolbench.lab.library.versions import read_content
from toolbench.lab.models import Model, Probe, Provider

router = Router()
Text = Annotated[str, Field(max_length=300)]


class ModelQuery(QuerySchema):
    """Filter of the models.

    Attributes:
        q: part of the name or canonical name, in upper or lower case; "" for all.
    """

    q: Text = ""


class ModelDocument(Schema):
    """Model of a provider.

    Attributes:
        provider_id: id of the provider.
        provider: name of the provider.
        canonical: name of the canonical model; "" if it is unknown.
        tags: words that pages show.
        workarounds: names of presets that the strategy `production` applies.
        retired: whether the model is no longer served.
        constraint: constraint that the method `constrained` uses, such as `response_format` or `grammar`; "" if the
            endpoint is not known to enforce one.
        note: remark about the model; "" without one.
    """

    id: int
    provider_id: int
    provider: str
    name: str
    canonical: str
    tags: list[str]
    workarounds: list[str]
    retired: bool
    constraint: str
    note: str


class ModelSettingsDocument(Schema):
    """Settings of a model that users edit.

    Attributes:
        version: number of the newest version. Send it with a change; a change of another version is refused.
        content: `workarounds`: list of names of presets; `capabilities`: object of what the endpoint is declared to
            support; `price`: object with `input` and `output` in dollars per million tokens, `date` and `source`, or {}
            for the list price.
    """

    version: int
    content: JsonObject


class ModelSettingsBody(BodySchema):
    """New settings of a model. A setting that is left out keeps its value.

    Attributes:
        version: the version that was read before the change.
        content: new values by name, as in `content` of ModelSettingsDocument.
    """

    version: Id
    content: JsonObject


class CanonicalBody(BodySchema):
    """Canonical model of a model.

    Attributes:
        canonical: name of the canonical model; "" if it is unknown.
    """

    canonical: Annotated[str, Field(max_length=MAX_NAME_CHARS)]


class ProbeCheckDocument(Schema):
    """Check of a probe.

    Attributes:
        sentence: the result in words.
    """

    title: str
    outcome: Literal["passed", "failed", "inconclusive"] = Field(validation_alias="word")
    sentence: str


class ProbeDocument(Schema):
    """Probe of a model's endpoint.

    Attributes:
        model: name of the model.
        provider: name of the provider.
        kind: `first_use` for the checks before the first trial, `conformance` for all checks.
        live: whether the probe is still queued or running.
        checks: the checks that have a result.
        total: number of all checks, also of those without a result.
        requests: number of requests that the probe has sent.
        tokens: number of tokens that its answers report.
        cost: dollars; null if it is unknown.
        proposed: patch of the preset that the probe proposes; {} for none.
    """

    id: int
    model: str
    provider: str
    kind: Literal["first_use", "conformance"]
    state: Literal["queued", "running", "done"]
    live: bool
    checks: list[ProbeCheckDocument]
    total: int
    requests: int
    tokens: int
    cost: float | None
    proposed: JsonObject


class ProbesDocument(Schema):
    """New probes, and those that were queued or running already.

    Attributes:
        ids: their ids, ordered by the names of their models.
    """

    ids: list[int]


@router.post("/providers/{int:provider_id}/probes", response={201: ProbesDocument}, auth=LAUNCH)
def probe_provider(request: HttpRequest, provider_id: int, body: AgreedBody) -> Status[dict[str, Any]]:
    """Queue a conformance probe of each model of a provider, except retired ones and those with an open probe."""
    provider = Provider.objects.filter(pk=provider_id).first()
    if provider is None:
        raise Http404(f"There is no provider {provider_id}; it may have been deleted.")
    probes = queue_probes(provider_id, confirmed_requests=body.agreed)
    subject = f"{len(probes):,} probe{pluralize(probes)} of {provider.name}"
    record(request, Action.LAUNCHED, subject, "/compatibility/")
    return Status(201, {"ids": [probe.pk for probe in probes]})


@router.get("/models", response=list[ModelDocument], auth=READ)
def list_models(request: HttpRequest, query: Query[ModelQuery]) -> list[dict[str, Any]]:
    """List the models by provider and name, retired models of a provider last."""
    return [_build_model(row) for group in get_models(query.q) for row in group.models]


@router.get("/models/{int:model_id}", response=ModelDocument, auth=READ)
def get_model(request: HttpRequest, model_id: int) -> dict[str, Any]:
    """Return a model."""
    return _build_model(build_model_rows([_get_model_or_404(model_id)])[0])


@router.patch("/models/{int:model_id}", response=ModelDocument, auth=LAUNCH)
def set_canonical_model(request: HttpRequest, model_id: int, body: CanonicalBody) -> dict[str, Any]:
    """Set the canonical model of a model. Earlier runs keep the one that they had."""
    if set_canonical_name(model_id, body.canonical) is None:
        raise _build_model_not_found(model_id)
    record(request, Action.CHANGED, f"canonical model of model {model_id}", f"/models/{model_id}/")
    return get_model(request, model_id)


@router.get("/models/{int:model_id}/settings", response=ModelSettingsDocument, auth=READ)
def read_model_settings(request: HttpRequest, model_id: int) -> dict[str, Any]:
    """Return the settings of a model that users edit."""
    model = _get_model_or_404(model_id)
    return {"version": get_model_settings(model_id).versions[0].number, "content": read_content(model)}


@router.put("/models/{int:model_id}/settings", response=ModelSettingsDocument, auth=LAUNCH)
def edit_model_settings(request: HttpRequest, model_id: int, body: ModelSettingsBody) -> dict[str, Any]:
    """Save a new version of a model's settings. Earlier runs keep their settings."""
    model = _get_model_or_404(model_id)
    content = read_content(model)
    if unknown_names := sorted(set(body.content) - set(content)):
        raise ProblemError(422, f"Remove {', '.join(unknown_names)[:200]}: a model has only {', '.join(content)}.")
    if wrong_names := [name for name, value in body.content.items() if type(value) is not type(content[name])]:
        raise ProblemError(422, f"Give {', '.join(wrong_names)} in the form that GET returns.")
    username = get_user(request).username
    number = save_model_settings(model, content | body.content, read_number=body.version, username=username)
    record(request, Action.CHANGED, f"settings of model {model.name}, version {number}", f"/models/{model_id}/")
    return {"version": number, "content": read_content(_get_model_or_404(model_id))}


@router.post("/models/{int:model_id}/probes", response={201: ProbesDocument}, auth=LAUNCH)
def probe_model(request: HttpRequest, model_id: int) -> Status[dict[str, Any]]:
    """Queue a conformance probe of a model and return its id, or return the id of the open one."""
    model = _get_model_or_404(model_id)
    probe = queue_probe(model, Probe.Kind.CONFORMANCE, why="A user requested this probe.")
    record(request, Action.LAUNCHED, f"probe of {model.name}", f"/probes/{probe.pk}/")
    return Status(201, {"ids": [probe.pk]})


@router.post("/models/{int:model_id}/omissions", response=SentenceDocument, auth=LAUNCH)
def omit_refused_parameters(request: HttpRequest, model_id: int) -> dict[str, str]:
    """Save a preset that omits the parameters that the model's endpoint refuses, as a workaround of the model.

    New runs with the strategy `production` apply it. 409 if no parameter is to be omitted.
    """
    _get_model_or_404(model_id)
    try:
        preset = adopt_omissions(model_id)
    except NothingToAdoptError as error:
        raise ProblemError(409, str(error)) from error
    record(request, Action.ADDED, f"preset {preset.name}", f"/models/{model_id}/")
    return {"sentence": f"{preset.name} is a workaround of the model now."}


@router.get("/probes/{int:probe_id}", response=ProbeDocument, auth=READ)
def get_probe(request: HttpRequest, probe_id: int) -> dict[str, Any]:
    """Return a probe with the result of each check."""
    try:
        page = get_probe_page(probe_id)
    except Probe.DoesNotExist:
        raise Http404(f"There is no probe {probe_id}; its model may have been deleted.") from None
    return _build_probe(page)


@router.post("/probes/{int:probe_id}/adopt", response=SentenceDocument, auth=LAUNCH)
def adopt_proposed_preset(request: HttpRequest, probe_id: int) -> dict[str, str]:
    """Save the preset that a probe proposes as a workaround of its model; 409 if it proposes none."""
    probe = Probe.objects.filter(pk=probe_id).first()
    if probe is None:
        raise Http404(f"There is no probe {probe_id}; its model may have been deleted.")
    try:
        preset = adopt_preset(probe_id)
    except NothingToAdoptError as error:
        raise ProblemError(409, str(error)) from error
    record(request, Action.ADDED, f"preset {preset.name}", f"/models/{probe.model_id}/")
    return {"sentence": f"{preset.name} is a workaround of {probe.model_name} now."}


def _get_model_or_404(model_id: int) -> Model:
    model = Model.objects.select_related("provider").filter(pk=model_id).first()
    if model is None:
        raise _build_model_not_found(model_id)
    return model


def _build_model_not_found(model_id: int) -> Http404:
    return Http404(f"There is no model {model_id}; its provider may have been deleted.")


def _build_model(row: ModelRow) -> dict[str, Any]:
    """Return the values of a ModelDocument."""
    names = ("id", "provider_id", "name", "canonical", "tags", "workarounds", "retired", "note")
    values = {name: getattr(row.model, name) for name in names}
    return values | {"provider": row.model.provider.name, "constraint": row.constraint}


def _build_probe(page: ProbePage) -> dict[str, Any]:
    """Return the values of a ProbeDocument."""
    probe = page.probe
    return {name: getattr(page, name) for name in ("live", "checks", "total", "requests", "tokens", "cost")} | {
        "id": probe.pk,
        "model": probe.model_name,
        "provider": probe.provider_name,
        "kind": probe.kind,
        "state": probe.state,
        "proposed": page.proposal.patch,
    }
