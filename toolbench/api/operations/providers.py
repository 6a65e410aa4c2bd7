"""Operations on providers. No answer contains a key, the value of a header or a proxy's login."""

from collections.abc import Container, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, Literal

from django.db import transaction
from django.http import Http404, HttpRequest
from ninja import Query, Router, Status
from pydantic import Field

from toolbench.api.authentication import ADMIN, LAUNCH, READ, record
from toolbench.api.documents.described import Schema
from toolbench.api.documents.figures import BodySchema, QuerySchema, SentenceDocument
from toolbench.api.problems import ProblemError
from toolbench.engine.types import JsonObject
from toolbench.lab.accounts.audit import Action
from toolbench.lab.endpoints import connect, offered_models
from toolbench.lab.endpoints.network import MAX_QUERY_CHARACTERS, NetworkSettings
from toolbench.lab.endpoints.rate_control import MAX_PER_MINUTE
from toolbench.lab.endpoints.setup_pages import ProviderRow, get_provider, get_providers
from toolbench.lab.endpoints.template_values import fill_from_template
from toolbench.lab.metrics.provider_budget import MAX_BUDGET, MIN_BUDGET
from toolbench.lab.models import Provider

router = Router()
# Settings that Provider and ProviderBody have under the same names.
STORED_SETTINGS = (
    *("name", "base_url", "api_prefix", "template", "wire", "key_env", "option_defaults", "connect_seconds"),
    *("read_seconds", "max_attempts", "concurrency", "adaptive", "requests_per_minute", "tokens_per_minute"),
    "budget_per_month",
    *("proxy_url", "ca_pem", "client_certificate", "query", "key_header"),
)
Text = Annotated[str, Field(max_length=300)]
Pem = Annotated[str, Field(max_length=100_000)]
Name = Annotated[str, Field(min_length=1, max_length=offered_models.MAX_MODEL_NAME_CHARACTERS)]
Seconds = Annotated[float, Field(gt=0, le=3_600)]


class ProviderDocument(Schema):
    """Provider. ProviderBody describes the other members.

    Attributes:
        kind: kind of the endpoint; `local` and `simulated` servers come with Toolbench or are started by it.
        address: base URL, without the API prefix and with keys masked; for a local or simulated server its name.
        key: `stored, encrypted`, `none needed`, or the name of the environment variable; never the key itself.
        header_names: names of the secret headers; their values are never shown.
        state: `pass` if it can be used, `infra` if it cannot, `na` if its local server does not run or, for an
            address, if it has no model. A wrong key is only found when it is used.
        state_text: the state in words, with the reason.
        models: number of models that are not retired.
    """

    id: int
    name: str
    kind: Literal["openai", "anthropic", "local", "simulated"]
    wire: Literal["chat", "anthropic", "responses"]
    template: str
    address: str
    key: str
    header_names: list[str]
    state: Literal["pass", "infra", "na"]
    state_text: str
    models: int
    concurrency: int
    adaptive: bool
    requests_per_minute: int | None
    tokens_per_minute: int | None
    max_attempts: int
    key_env: str
    option_defaults: JsonObject
    connect_seconds: float | None
    read_seconds: float | None
    budget_per_month: float | None
    proxy_url: str
    ca_pem: str
    client_certificate: str
    query: str
    key_header: str


class ProviderBody(BodySchema):
    """Settings of a provider. PATCH keeps the settings that the body does not have.

    Attributes:
        name: name; "" for the title of the template, or for the host without a template.
        base_url: URL without the API prefix; "" for the URL of the template. Required unless the template has a URL or
            is `simulated`.
        api_prefix: path between the base URL and the paths of the API; "" for the prefix of the template. Without a
            template, or if the template has another URL than `base_url`, "" stands for /v1.
        template: name of the template of a known provider, from the form of the page; `simulated` for simulated models;
            "" for none.
        wire: wire format of requests and answers: `chat` (OpenAI's chat completions), `anthropic` (Messages) or
            `responses` (OpenAI's Responses); "" for the wire format of the template, or `chat`.
        key: key to store encrypted; no answer contains it. "" keeps the stored key.
        key_env: name of an environment variable of the worker that contains the key.
        remove_key: whether to delete the stored key; ignored with `key` or `key_env`.
        headers: secret headers to add to the stored ones: value by name.
        remove_headers: names of stored headers to delete.
        option_defaults: request parameters that every request has, by name.
        connect_seconds: timeout for connecting; null for the default of the installation, 10 unless it was changed.
        read_seconds: timeout for reading; null for the default of the installation, 120 unless it was changed.
        max_attempts: maximum of attempts for one request.
        concurrency: limit of trials in flight over all workers; with `adaptive`, the maximum of this limit.
        adaptive: whether the limit follows the answers: it rises while they come well, and falls while the provider
            rejects requests or answers slowly.
        requests_per_minute: limit over all workers; null for no limit.
        tokens_per_minute: limit over all workers; null for no limit.
        budget_per_month: dollars that trials and gateway requests may cost in a calendar month (UTC); null for no
            limit.
        proxy_url: URL of a proxy, with or without a login; "" for none. Without a login, the stored login of the same
            proxy is kept. No answer contains a login.
        remove_proxy_login: whether to delete the stored login of the proxy.
        ca_pem: certificates in PEM that are trusted in addition to those of the system.
        client_certificate: certificate in PEM; "" for none, which also deletes the stored private key.
        client_key: private key of `client_certificate` in PEM; no answer contains it. "" keeps the stored one.
        query: query parameters of every request, such as api-version=2024-10-21; not a secret. "" for the parameters of
            the template.
        key_header: name of the header for the key; "" for the header of the template, or of the wire format.
    """

    name: Annotated[str, Field(max_length=connect.MAX_NAME_CHARACTERS)] = ""
    base_url: Text = ""
    api_prefix: Annotated[str, Field(max_length=60)] = ""
    template: Annotated[str, Field(max_length=40)] = ""
    wire: Literal["", "chat", "anthropic", "responses"] = ""
    key: Annotated[str, Field(max_length=4_000)] = ""
    key_env: Annotated[str, Field(max_length=80)] = ""
    remove_key: bool = False
    headers: dict[str, Annotated[str, Field(max_length=4_000)]] = {}
    remove_headers: Annotated[list[Text], Field(max_length=50)] = []
    option_defaults: JsonObject = {}
    connect_seconds: Seconds | None = None
    read_seconds: Seconds | None = None
    max_attempts: Annotated[int, Field(ge=1, le=10)] = 3
    concurrency: Annotated[int, Field(ge=1, le=1_000)] = 8
    adaptive: bool = False
    requests_per_minute: Annotated[int, Field(ge=1, le=MAX_PER_MINUTE)] | None = None
    tokens_per_minute: Annotated[int, Field(ge=1, le=MAX_PER_MINUTE)] | None = None
    budget_per_month: Annotated[float, Field(ge=MIN_BUDGET, le=MAX_BUDGET)] | None = None
    proxy_url: Text = ""
    remove_proxy_login: bool = False
    ca_pem: Pem = ""
    client_certificate: Pem = ""
    client_key: Annotated[str, Field(max_length=20_000)] = ""
    query: Annotated[str, Field(max_length=MAX_QUERY_CHARACTERS)] = ""
    key_header: Annotated[str, Field(max_length=60)] = ""


class OfferedModelsDocument(Schema):
    """Last list of models that was requested from a provider.

    Attributes:
        names: names of the models that match the filter, at most 300, in the provider's order.
        added: those of `names` that were added to the provider already.
        total: number of all models of the list, also of those that do not match.
        trouble: why the list could not be read; "" without an error.
        listed_at: time of the last request for the list; null if none was sent with these settings since the server
            started.
    """

    names: list[str]
    added: list[str]
    total: int
    trouble: str
    listed_at: datetime | None


class AddModelsBody(BodySchema):
    """Models to add.

    Attributes:
        names: names as requests send them; the provider need not list them.
    """

    names: Annotated[list[Name], Field(min_length=1, max_length=500)]


class OfferedQuery(QuerySchema):
    """Filter of the models.

    Attributes:
        q: part of the name, in upper or lower case; "" for all.
    """

    q: Text = ""


@router.get("/providers", response=list[ProviderDocument], auth=READ)
def list_providers(request: HttpRequest) -> list[dict[str, Any]]:
    """List the providers."""
    return [_build_provider(row) for row in get_providers()]


@router.post("/providers", response={201: ProviderDocument}, auth=ADMIN)
def connect_provider(request: HttpRequest, body: ProviderBody) -> Status[dict[str, Any]]:
    """Connect a provider; no request is sent to it.

    A provider with the same name, template and host that has no usable key is changed instead.
    """
    settings = _build_settings(body)
    before = connect.find_connected(settings)
    provider = connect.connect_provider(settings)
    _record_provider(request, settings, before, provider)
    return Status(201, _build_provider(get_provider(provider.pk)))


@router.get("/providers/{int:provider_id}", response=ProviderDocument, auth=READ)
def get_one_provider(request: HttpRequest, provider_id: int) -> dict[str, Any]:
    """Return a provider."""
    _get_provider_or_404(provider_id)
    return _build_provider(get_provider(provider_id))


@router.patch("/providers/{int:provider_id}", response=ProviderDocument, auth=ADMIN)
def edit_provider(request: HttpRequest, provider_id: int, body: ProviderBody) -> dict[str, Any]:
    """Change the settings that the body has, and keep all others. Trials that start later use them.

    `option_defaults` apply to later runs only.
    """
    with transaction.atomic():
        provider = _get_provider_or_404(provider_id, lock=True)
        stored = {name: getattr(provider, name) for name in STORED_SETTINGS if name not in body.model_fields_set}
        settings = _build_settings(body.model_copy(update=stored), stored)
        with _explain_builtin():
            edited_provider = connect.edit_provider(provider_id, settings)
        _record_provider(request, settings, provider, edited_provider)
    return _build_provider(get_provider(provider_id))


@router.delete("/providers/{int:provider_id}", response={204: None}, auth=ADMIN)
def delete_provider(request: HttpRequest, provider_id: int) -> Status[None]:
    """Delete a provider; 409 for one that comes with Toolbench. Its runs are kept."""
    provider = _get_provider_or_404(provider_id)
    with _explain_builtin():
        connect.delete_provider(provider_id)
    record(request, Action.DELETED, f"provider {provider.name}")
    return Status(204, None)


@router.get("/providers/{int:provider_id}/offered", response=OfferedModelsDocument, auth=READ)
def list_offered_models(request: HttpRequest, provider_id: int, query: Query[OfferedQuery]) -> dict[str, Any]:
    """Return the models that the provider listed last, without sending it a request."""
    _get_provider_or_404(provider_id)
    return _build_offer(provider_id, query.q)


@router.post("/providers/{int:provider_id}/offered", response=OfferedModelsDocument, auth=LAUNCH)
def request_offered_models(request: HttpRequest, provider_id: int) -> dict[str, Any]:
    """Request the list of models from the provider and return it; `trouble` says why it could not be read."""
    _get_provider_or_404(provider_id)
    offered_models.request_models(provider_id)
    return _build_offer(provider_id, "")


@router.post("/providers/{int:provider_id}/models", response=SentenceDocument, auth=LAUNCH)
def add_models(request: HttpRequest, provider_id: int, body: AddModelsBody) -> dict[str, str]:
    """Add models to a provider, except those that it has already, and blank or unprintable names.

    A simulated provider accepts simulated models only.
    """
    provider = _get_provider_or_404(provider_id)
    added = offered_models.add_models(provider_id, body.names)
    sentence = f"{added} model{'' if added == 1 else 's'} added"
    record(request, Action.ADDED, f"{sentence} to {provider.name}", f"/providers/{provider_id}/")
    return {"sentence": f"{sentence}."}


def _build_settings(body: ProviderBody, stored: Container[str] = ()) -> connect.ConnectionSettings:
    """Return the settings of a body; blank ones get their defaults, except those whose names are in `stored`."""
    network = {"ca": body.ca_pem, "proxy": body.proxy_url, "query": body.query, "key_header": body.key_header}
    network |= {"client_certificate": body.client_certificate, "client_key": body.client_key}
    names = set(connect.ConnectionSettings.__dataclass_fields__) & set(ProviderBody.model_fields)
    values = body.model_dump(include=names) | {"remove_headers": tuple(body.remove_headers)}
    settings = NetworkSettings(**network, remove_proxy_login=body.remove_proxy_login)
    return fill_from_template(connect.ConnectionSettings(**values, network=settings), stored)


def _record_provider(
    request: HttpRequest, settings: connect.ConnectionSettings, before: Provider | None, provider: Provider
) -> None:
    """Add the change of a provider and changes of its secrets to the audit list."""
    for action in connect.list_save_actions(settings, before, provider):
        record(request, action, f"provider {provider.name}", f"/providers/{provider.pk}/")


@contextmanager
def _explain_builtin() -> Iterator[None]:
    """Convert BuiltinProviderError of the block to a problem.

    Raises:
        ProblemError: the block would change a provider that comes with Toolbench (409).
    """
    try:
        yield
    except connect.BuiltinProviderError as error:
        raise ProblemError(409, str(error)) from error


def _get_provider_or_404(provider_id: int, *, lock: bool = False) -> Provider:
    """Return the provider; if `lock` is set, its row is locked until the end of the transaction.

    Raises:
        Http404: there is no such provider.
    """
    providers = Provider.objects.select_for_update() if lock else Provider.objects.all()
    provider = providers.filter(pk=provider_id).first()
    if provider is None:
        raise Http404(f"There is no provider {provider_id}; it may have been deleted.")
    return provider


def _build_provider(row: ProviderRow) -> dict[str, Any]:
    """Return the values of a ProviderDocument."""
    provider = row.provider
    # A ProviderDocument has `address` in place of the base URL, and no API prefix.
    names = {"id", "kind", "header_names", *STORED_SETTINGS} - {"base_url", "api_prefix"}
    row_names = ("address", "key", "state", "state_text")
    return {
        **{name: getattr(provider, name) for name in names},
        **{name: getattr(row, name) for name in row_names},
        "models": row.model_count,
    }


def _build_offer(provider_id: int, search: str) -> dict[str, Any]:
    """Return the values of an OfferedModelsDocument."""
    offer = offered_models.get_offered_models(provider_id, search)
    return {
        "total": offer.total,
        "trouble": offer.error,
        "listed_at": offer.listed_at,
        "names": [model.name for model in offer.models],
        "added": [model.name for model in offer.models if model.is_added],
    }
