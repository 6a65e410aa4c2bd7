"""Actions on providers: connect, edit and delete a provider, list and add its models."""

import asyncio
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from django.db import transaction

from toolbench.engine.policy.layered_key import RESERVED_KEYS
from toolbench.engine.policy.presets import list_model_workarounds
from toolbench.engine.types import JsonObject
from toolbench.lab.credentials.headers import change_headers, list_secret_names, list_unchanged_names
from toolbench.lab.credentials.keys import KeyUnavailableError, encrypt, read_endpoint_headers, read_endpoint_key
from toolbench.lab.credentials.provider_secrets import list_provider_secrets
from toolbench.lab.endpoints.network import (
    REROUTED,
    NetworkSettings,
    change_network,
    is_rerouted,
    list_network_errors,
)
from toolbench.lab.endpoints.rate_control import list_rate_errors
from toolbench.lab.endpoints.simulated import SIMULATED_TEMPLATE, build_personas, find_simulated_url_error
from toolbench.lab.endpoints.urls import find_prefix_error, find_url_error, is_same_origin
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.metrics.provider_budget import MAX_BUDGET, MIN_BUDGET
from toolbench.lab.models import Model, Provider
from toolbench.lab.query_params import clean_text
from toolbench.lab.worker.completion import end_orphaned_trials, finish_runs
from toolbench.lab.worker.queue import notify_workers
from toolbench.lab.worker.trial_plan import (
    ServedElsewhereError,
    ServerNotReadyError,
    build_model_endpoint,
    load_provider_access,
)
from toolbench.providers import model_list
from toolbench.providers.endpoint import MODEL_PLACEHOLDER, Endpoint
from toolbench.providers.simulated.server import SERVER_NAME
from toolbench.providers.templates import ProviderTemplate, list_templates_with_key, load_templates

LIST_TIMEOUT_SECONDS = 15.0
_KIND_BY_WIRE = {
    Provider.Wire.CHAT.value: Provider.Kind.OPENAI,
    Provider.Wire.ANTHROPIC.value: Provider.Kind.ANTHROPIC,
    Provider.Wire.RESPONSES.value: Provider.Kind.OPENAI,
}


class ConnectionSettingsError(InvalidFieldsError):
    """Raised if the settings of a provider are invalid."""


class ModelListError(Exception):
    """Raised if a provider returns no list of models; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Settings of a provider as a user enters them.

    Attributes:
        wire: the wire format of the API.
        template: slug of a template; "" for none.
        key: a key to store; "" to leave a stored key unchanged.
        key_env: name of the variable of the worker's environment that contains the key; "" for none.
        remove_key: whether to delete a stored key, if neither `key` nor `key_env` is given.
        headers: values of headers to add or replace, by name.
        remove_headers: names of stored headers to delete.
        option_defaults: default parameters of every request.
        connect_seconds: timeout for connecting; None for the default.
        read_seconds: timeout for reading; None for the default.
        max_attempts: maximum attempts of one request, retries included.
        concurrency: maximum number of trials in flight.
        adaptive: whether fewer are in flight while the provider does not answer well.
        requests_per_minute, tokens_per_minute: limits over all workers; None for no limit.
        budget_per_month: dollars that trials may cost in a calendar month (UTC); None for no limit.
        network: proxy, certificates, query parameters and the header of the key.
    """

    name: str
    base_url: str
    api_prefix: str = "/v1"
    template: str = ""
    wire: str = Provider.Wire.CHAT
    key: str = field(default="", repr=False)
    key_env: str = ""
    remove_key: bool = False
    headers: JsonObject = field(default_factory=dict, repr=False)
    remove_headers: tuple[str, ...] = ()
    option_defaults: JsonObject = field(default_factory=dict)
    connect_seconds: float | None = None
    read_seconds: float | None = None
    max_attempts: int = 3
    concurrency: int = 8
    adaptive: bool = False
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    budget_per_month: float | None = None
    network: NetworkSettings = field(default_factory=NetworkSettings)

    @property
    def has_secret(self) -> bool:
        """Whether a key, a header, a login or a private key is entered; a header may contain a secret."""
        return bool(self.key or self.headers or self.network.has_secret)

    @property
    def removes_secret(self) -> bool:
        """Whether a stored key, header or login is removed."""
        return bool(self.remove_key or self.remove_headers or self.network.remove_proxy_login)


@dataclass(frozen=True, slots=True)
class DetectedKey:
    """A variable of the environment that contains the key for a template.

    Attributes:
        variable: its name.
        provider_id: id of a provider that uses the variable; None without one.
    """

    template: ProviderTemplate
    variable: str
    provider_id: int | None


def list_templates() -> tuple[ProviderTemplate, ...]:
    """Return all templates of providers."""
    return tuple(load_templates().values())


def list_detected_keys() -> tuple[DetectedKey, ...]:
    """Return the keys in the environment, without their values. One query."""
    provider_ids = dict(Provider.objects.exclude(key_env="").values_list("key_env", "pk"))
    return tuple(
        DetectedKey(template, template.key_env, provider_ids.get(template.key_env))
        for template in list_templates_with_key(os.environ)
    )


def connect_provider(settings: ConnectionSettings) -> Provider:
    """Create a provider and return it.

    If a provider with the same name and template exists and has no usable key, that provider is edited instead.

    Raises:
        ConnectionSettingsError: the settings are invalid.
    """
    existing = Provider.objects.filter(name=settings.name.strip()).first()
    is_known = settings.template in load_templates()
    if existing is not None and existing.template == settings.template and is_known and not _has_key(existing):
        return edit_provider(existing.pk, settings)
    _check_settings(settings, Provider())
    return _save_provider(Provider(), settings)


def edit_provider(provider_id: int, settings: ConnectionSettings) -> Provider:
    """Change the settings of a provider and notify the workers.

    They apply from the next trial on, except for settings that a run froze at its launch.

    Raises:
        ConnectionSettingsError: the settings are invalid.
        Provider.DoesNotExist: there is no such provider.
    """
    provider = Provider.objects.get(pk=provider_id)
    _check_settings(settings, provider)
    provider = _save_provider(provider, settings)
    notify_workers([provider_id])
    return provider


def delete_provider(provider_id: int) -> None:
    """Delete a provider; its runs are kept.

    Its queued trials end with an infrastructure error; trials in flight continue.
    """
    with transaction.atomic():
        Provider.objects.filter(pk=provider_id).delete()
        end_orphaned_trials()
    finish_runs()


def list_provider_models(provider_id: int) -> tuple[str, ...]:
    """Request the names of the provider's models from its API and return them in its order.

    Must not be called from a running event loop.

    Raises:
        ModelListError: the provider returned no list.
        Provider.DoesNotExist: there is no such provider.
    """
    provider = Provider.objects.get(pk=provider_id)
    if MODEL_PLACEHOLDER in provider.api_prefix:
        raise ModelListError("This API does not list deployments: enter the names of your deployments below.")
    try:
        endpoint = build_model_endpoint(load_provider_access(provider), provider.service, "")
        return asyncio.run(_request_models(endpoint))
    except (KeyUnavailableError, ServedElsewhereError, ServerNotReadyError) as error:
        raise ModelListError(str(error)) from error
    except model_list.ProviderRequestError as error:
        status = f"HTTP {error.error.status}: " if error.error.status else ""
        hint = f" {error.error.hint}" if error.error.hint else ""
        raise ModelListError(f"{status}{error.error.message}{hint}") from error


async def _request_models(endpoint: Endpoint) -> tuple[str, ...]:
    """Request the list; fail after `LIST_TIMEOUT_SECONDS`, since a page waits for it."""
    try:
        async with asyncio.timeout(LIST_TIMEOUT_SECONDS):
            return await model_list.list_models(endpoint)
    except TimeoutError:
        raise ModelListError(
            f"The provider returned no list of models within {LIST_TIMEOUT_SECONDS:g} s: try again, or enter a name."
        ) from None


def add_models(provider_id: int, names: Iterable[str]) -> int:
    """Add models that the provider does not have yet, with the workarounds that the engine knows for their names.

    Names that are blank or longer than 200 characters are ignored. For a simulated provider, other
    names than those of its simulated models are ignored.

    Returns:
        The number of models added.
    """
    provider = Provider.objects.get(pk=provider_id)
    cleaned = (clean_text(name) for name in names)
    valid_names = dict.fromkeys(name for name in cleaned if 0 < len(name) <= 200)
    existing_names = set(provider.models.values_list("name", flat=True))
    new_names = [name for name in valid_names if name not in existing_names]
    if provider.kind == Provider.Kind.SIMULATED:
        simulated_models = build_personas(provider)
        models = [simulated_models[name] for name in new_names if name in simulated_models]
    else:
        models = [_build_model(provider, name) for name in new_names]
    return len(Model.objects.bulk_create(models, ignore_conflicts=True))


def _build_model(provider: Provider, name: str) -> Model:
    return Model(
        provider=provider,
        name=name,
        canonical=name.partition(":")[0].lower() if provider.template == "openrouter" else name.lower(),
        workarounds=list(list_model_workarounds(name)),
        mixed_upstreams=name.endswith(":nitro"),
    )


def _has_key(provider: Provider) -> bool:
    try:
        return bool(read_endpoint_key(provider))
    except KeyUnavailableError:
        return False


def _check_settings(settings: ConnectionSettings, provider: Provider) -> None:
    """Check all settings against the stored provider; a new provider has no primary key.

    Raises:
        ConnectionSettingsError: settings are invalid.
    """
    secrets = list_provider_secrets(
        provider, (settings.key, os.environ.get(settings.key_env.strip(), ""), *map(str, _list_secret_values(settings)))
    )
    sentences = [
        ("name", _find_name_error(settings.name.strip(), provider.pk)),
        ("template", _find_kind_error(settings, provider)),
        ("wire", _find_wire_error(settings, provider)),
        ("key", _find_key_error(settings, provider)),
        ("headers", _find_header_error(settings, provider)),
        *_list_field_errors(settings, secrets),
        *list_network_errors(settings.network, provider, secrets),
    ]
    if errors := {name: [sentence] for name, sentence in sentences if sentence}:
        raise ConnectionSettingsError(errors)


def _list_secret_values(settings: ConnectionSettings) -> tuple[object, ...]:
    return tuple(settings.headers[name] for name in list_secret_names(settings.headers))


def _find_kind_error(settings: ConnectionSettings, provider: Provider) -> str:
    if provider.pk is None or (settings.template == SIMULATED_TEMPLATE) == (provider.kind == Provider.Kind.SIMULATED):
        return ""
    return "A provider cannot change between simulated and real models: connect another provider instead."


def _find_wire_error(settings: ConnectionSettings, provider: Provider) -> str:
    is_changed = provider.kind == Provider.Kind.SIMULATED and provider.pk is not None and settings.wire != provider.wire
    if not is_changed or not provider.models.exists():
        return ""
    return "The names of its simulated models belong to its API: connect another simulated provider for the other API."


def _find_name_error(name: str, provider_id: int | None) -> str:
    if not 0 < len(name) <= 80:
        return "A provider needs a name of at most 80 characters."
    is_taken = Provider.objects.filter(name=name).exclude(pk=provider_id or 0).exists()
    return f"There is a provider named {name} already." if is_taken else ""


def _find_key_error(settings: ConnectionSettings, provider: Provider) -> str:
    """Return why the stored key cannot stay; "" if it can. It may be sent only to the host it was entered for."""
    stays = provider.key_encrypted is not None and not (
        settings.key.strip() or settings.key_env.strip() or settings.remove_key
    )
    if not stays or not _is_other_host(settings, provider):
        return REROUTED if stays and is_rerouted(settings.network, provider) else ""
    return "The address leads to another host: enter the key for it, or choose to remove the stored key."


def _find_header_error(settings: ConnectionSettings, provider: Provider) -> str:
    if not all(isinstance(value, str) for value in settings.headers.values()):
        return 'Headers are a JSON object with texts as values, such as {"X-Title": "Toolbench"}.'
    unchanged = list_unchanged_names(provider, settings.headers, settings.remove_headers)
    secret = ", ".join(list_secret_names(unchanged))
    if secret and is_rerouted(settings.network, provider):
        return f"With another proxy or CA file another machine may read {secret}: enter it again, or remove it."
    if secret and _is_other_host(settings, provider):
        return f"The address leads to another host: enter {secret} for it, or choose to remove what is stored."
    has_changes = settings.headers or settings.remove_headers
    return _find_decryption_error(provider) if unchanged and has_changes else ""


def _find_decryption_error(provider: Provider) -> str:
    try:
        read_endpoint_headers(provider)
    except KeyUnavailableError as error:
        return str(error)
    return ""


def _is_other_host(settings: ConnectionSettings, provider: Provider) -> bool:
    return not find_url_error(settings.base_url) and not is_same_origin(provider.base_url, settings.base_url)


def _list_field_errors(settings: ConnectionSettings, secrets: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the name of each field with its error; the error is "" if the field is valid."""
    is_simulated = settings.template == SIMULATED_TEMPLATE
    yield (
        "base_url",
        ""
        if is_simulated
        else find_url_error(settings.base_url, secrets) or find_simulated_url_error(settings.base_url),
    )
    yield "api_prefix", find_prefix_error(settings.api_prefix, secrets)
    is_known = is_simulated or not settings.template or settings.template in load_templates()
    yield "template", "" if is_known else f"There is no template {settings.template}."
    yield "wire", "" if settings.wire in Provider.Wire.values else f"There is no API named {settings.wire}."
    reserved = ", ".join(sorted(RESERVED_KEYS & settings.option_defaults.keys()))
    yield "option_defaults", f"Toolbench sets {reserved} itself, so these cannot be defaults." if reserved else ""
    yield "max_attempts", "" if 1 <= settings.max_attempts <= 10 else "Enter 1 to 10 attempts."
    is_concurrency = 1 <= settings.concurrency <= 1000
    yield "concurrency", "" if is_concurrency else "Enter 1 to 1000 trials in flight."
    yield from list_rate_errors(settings.requests_per_minute, settings.tokens_per_minute)
    is_budget = settings.budget_per_month is None or MIN_BUDGET <= settings.budget_per_month <= MAX_BUDGET
    sentence = f"A budget is {MIN_BUDGET} to {MAX_BUDGET:,.0f} dollars; leave it empty for none."
    yield "budget_per_month", "" if is_budget else sentence


def _save_provider(provider: Provider, settings: ConnectionSettings) -> Provider:
    provider.name = settings.name.strip()
    provider.template = settings.template
    provider.wire = settings.wire
    provider.base_url = settings.base_url.strip().rstrip("/")
    if settings.template == SIMULATED_TEMPLATE:
        provider.kind, provider.service, provider.base_url = Provider.Kind.SIMULATED, SERVER_NAME, ""
    elif provider.kind in _KIND_BY_WIRE.values():
        provider.kind = _KIND_BY_WIRE[settings.wire]
    provider.api_prefix = settings.api_prefix.strip()
    provider.option_defaults = settings.option_defaults
    provider.connect_seconds = settings.connect_seconds
    provider.read_seconds = settings.read_seconds
    provider.max_attempts = settings.max_attempts
    provider.concurrency, provider.adaptive = settings.concurrency, settings.adaptive
    provider.requests_per_minute = settings.requests_per_minute
    provider.tokens_per_minute = settings.tokens_per_minute
    provider.budget_per_month = settings.budget_per_month
    provider.paused_reason = ""
    _set_key(provider, settings)
    change_headers(provider, settings.headers, settings.remove_headers)
    change_network(provider, settings.network)
    provider.save()
    return provider


def _set_key(provider: Provider, settings: ConnectionSettings) -> None:
    if key := settings.key.strip():
        provider.key_source, provider.key_encrypted, provider.key_env = Provider.KeySource.STORED, encrypt(key), ""
    elif variable := settings.key_env.strip():
        provider.key_source, provider.key_env = Provider.KeySource.ENVIRONMENT, variable
        provider.key_encrypted = None
    elif settings.remove_key or provider.key_encrypted is None:
        provider.key_source, provider.key_encrypted, provider.key_env = Provider.KeySource.NONE, None, ""
