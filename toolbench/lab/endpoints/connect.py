"""Connection of providers, from a template or by hand.

The key comes from the environment or is stored encrypted.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from django.db import transaction

from toolbench.engine.policy.layered_key import RESERVED_KEYS
from toolbench.engine.policy.presets import list_model_workarounds
from toolbench.engine.types import JsonObject
from toolbench.lab.credentials.headers import change_headers, list_kept_names, list_secret_names
from toolbench.lab.credentials.keys import KeyUnavailableError, encrypt, read_endpoint_headers, read_endpoint_key
from toolbench.lab.credentials.provider_secrets import list_provider_secrets
from toolbench.lab.endpoints.network import (
    REROUTED,
    NetworkSettings,
    change_network,
    is_rerouted,
    list_network_errors,
)
from toolbench.lab.endpoints.simulated import SIMULATED_TEMPLATE as SIMULATED
from toolbench.lab.endpoints.simulated import build_personas, find_simulated_url_error
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
from toolbench.providers.simulated.server import SERVER_NAME as SERVICE
from toolbench.providers.templates import ProviderTemplate, list_templates_with_key, load_templates

LIST_TIMEOUT_SECONDS = 15.0
_KIND_BY_WIRE = {
    Provider.Wire.CHAT.value: Provider.Kind.OPENAI,
    Provider.Wire.ANTHROPIC.value: Provider.Kind.ANTHROPIC,
    Provider.Wire.RESPONSES.value: Provider.Kind.OPENAI,
}


class ConnectionSettingsError(InvalidFieldsError):
    """The settings of a provider are invalid; the errors are given by field."""


class ModelListError(Exception):
    """The provider gave no list of models; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Settings of a provider as a person enters them.

    Attributes:
        wire: the wire format of the API.
        key: a key to store; a blank key leaves a stored one unchanged, unless `remove_key` is set.
        key_env: a variable of the worker's environment that has the key.
        headers: headers that are added to the stored ones, or replace those with the same names.
        remove_headers: names of stored headers to delete.
        connect_seconds: timeout of a connection; None for the default.
        read_seconds: timeout of an answer; None for the default.
        max_attempts: attempts of one request, retries included.
        concurrency: trials in flight at most.
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
    budget_per_month: float | None = None
    network: NetworkSettings = field(default_factory=NetworkSettings)

    @property
    def has_secret(self) -> bool:
        """Whether a key, a header, a login or a private key is entered: headers hold keys as well."""
        return bool(self.key or self.headers or self.network.has_secret)

    @property
    def removes_secret(self) -> bool:
        """Whether a stored key, header or login is removed."""
        return bool(self.remove_key or self.remove_headers or self.network.remove_proxy_login)


@dataclass(frozen=True, slots=True)
class DetectedKey:
    """A key found in the environment, by the name of its variable.

    Attributes:
        provider_id: the provider that uses the variable already; None without one.
    """

    template: ProviderTemplate
    variable: str
    provider_id: int | None


def list_templates() -> tuple[ProviderTemplate, ...]:
    """Return every template of a provider."""
    return tuple(load_templates().values())


def list_detected_keys() -> tuple[DetectedKey, ...]:
    """Return the keys found in the environment, without their values. One query."""
    used = dict(Provider.objects.exclude(key_env="").values_list("key_env", "pk"))
    return tuple(
        DetectedKey(found, found.key_env, used.get(found.key_env)) for found in list_templates_with_key(os.environ)
    )


def connect_provider(wish: ConnectionSettings) -> Provider:
    """Connect a new provider.

    An existing provider with the same name and the same known template is edited instead if it has no usable key.

    Raises:
        ConnectionSettingsError: the settings are invalid.
    """
    there = Provider.objects.filter(name=wish.name.strip()).first()
    known = wish.template in load_templates()
    if there is not None and there.template == wish.template and known and not _has_key(there):
        return edit_provider(there.pk, wish)
    _check_settings(wish, Provider())
    return _save_provider(Provider(), wish)


def edit_provider(provider_id: int, wish: ConnectionSettings) -> Provider:
    """Change the settings of a provider and notify the workers.

    They apply from the next trial on; existing runs keep the settings that were stored at launch.

    Raises:
        ConnectionSettingsError: the settings are invalid.
        Provider.DoesNotExist: there is no such provider.
    """
    provider = Provider.objects.get(pk=provider_id)
    _check_settings(wish, provider)
    provider = _save_provider(provider, wish)
    notify_workers([provider_id])
    return provider


def delete_provider(provider_id: int) -> None:
    """Delete a provider; its runs are kept.

    Its queued trials end as infrastructure errors with an explanation; trials in flight continue.
    """
    with transaction.atomic():
        Provider.objects.filter(pk=provider_id).delete()
        end_orphaned_trials()
    finish_runs()


def list_provider_models(provider_id: int) -> tuple[str, ...]:
    """Request the names of the provider's models from its API, in its order.

    Must not be called from a running event loop.

    Raises:
        ModelListError: the provider gave no list.
        Provider.DoesNotExist: there is no such provider.
    """
    provider = Provider.objects.get(pk=provider_id)
    if MODEL_PLACEHOLDER in provider.api_prefix:
        raise ModelListError("This API lists no deployments: enter the names of yours below.")
    try:
        endpoint = build_model_endpoint(load_provider_access(provider), provider.service, "")
        return asyncio.run(_request_models(endpoint))
    except (KeyUnavailableError, ServedElsewhereError, ServerNotReadyError) as error:
        raise ModelListError(str(error)) from error
    except model_list.ProviderRequestError as failed:
        status = f"HTTP {failed.error.status}: " if failed.error.status else ""
        hint = f" {failed.error.hint}" if failed.error.hint else ""
        raise ModelListError(f"{status}{failed.error.message}{hint}") from failed


async def _request_models(endpoint: Endpoint) -> tuple[str, ...]:
    """Request the list within `LIST_TIMEOUT_SECONDS`, because a page waits for it."""
    try:
        async with asyncio.timeout(LIST_TIMEOUT_SECONDS):
            return await model_list.list_models(endpoint)
    except TimeoutError:
        raise ModelListError(
            f"It gave no list of models within {LIST_TIMEOUT_SECONDS:g} s; ask again, or name a model."
        ) from None


def add_models(provider_id: int, names: Iterable[str]) -> int:
    """Add the models that the provider does not have yet, with the workarounds known for their names.

    Names that are blank or longer than 200 characters are ignored. A simulated provider accepts the names of its
    simulated models only.

    Returns:
        The number of models added.
    """
    provider = Provider.objects.get(pk=provider_id)
    typed = (clean_text(name) for name in names)
    valid_names = dict.fromkeys(name for name in typed if 0 < len(name) <= 200)
    known = set(provider.models.values_list("name", flat=True))
    personas = build_personas(provider) if provider.kind == Provider.Kind.SIMULATED else None
    missing = [name for name in valid_names if name not in known]
    fresh = [
        personas[name] if personas else _build_model(provider, name)
        for name in missing
        if personas is None or name in personas
    ]
    return len(Model.objects.bulk_create(fresh, ignore_conflicts=True))


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


def _check_settings(wish: ConnectionSettings, provider: Provider) -> None:
    secrets = [("key", _find_key_error(wish, provider)), ("headers", _find_header_error(wish, provider))]
    kind = [("template", _find_kind_error(wish, provider)), ("wire", _find_wire_error(wish, provider))]
    known = list_provider_secrets(
        provider, (wish.key, os.environ.get(wish.key_env.strip(), ""), *map(str, _list_secret_values(wish)))
    )
    network = list_network_errors(wish.network, provider, known)
    troubles = [
        ("name", _find_name_error(wish.name.strip(), provider.pk)),
        *kind,
        *secrets,
        *_list_field_errors(wish, known),
        *network,
    ]
    if errors := {name: [sentence] for name, sentence in troubles if sentence}:
        raise ConnectionSettingsError(errors)


def _list_secret_values(wish: ConnectionSettings) -> tuple[object, ...]:
    return tuple(wish.headers[name] for name in list_secret_names(wish.headers))


def _find_kind_error(wish: ConnectionSettings, provider: Provider) -> str:
    if provider.pk is None or (wish.template == SIMULATED) == (provider.kind == Provider.Kind.SIMULATED):
        return ""
    return "What is simulated stays so, and nothing else becomes simulated: connect another provider instead."


def _find_wire_error(wish: ConnectionSettings, provider: Provider) -> str:
    fixed = provider.kind == Provider.Kind.SIMULATED and provider.pk is not None and wish.wire != provider.wire
    if not fixed or not provider.models.exists():
        return ""
    return "Its personas are named for the API that they speak: connect another simulated provider for the other."


def _find_name_error(name: str, other_than: int | None) -> str:
    if not 0 < len(name) <= 80:
        return "A provider needs a name of at most 80 characters."
    taken = Provider.objects.filter(name=name).exclude(pk=other_than or 0).exists()
    return f"There is a provider named {name} already." if taken else ""


def _find_key_error(wish: ConnectionSettings, provider: Provider) -> str:
    """Return why a stored key cannot be kept: it must be sent only to the host for which it was entered."""
    kept = provider.key_encrypted is not None and not (wish.key.strip() or wish.key_env.strip() or wish.remove_key)
    if not kept or not _is_other_host(wish, provider):
        return REROUTED if kept and is_rerouted(wish.network, provider) else ""
    return "The address leads to another host: enter the key for it, or choose to remove the stored key."


def _find_header_error(wish: ConnectionSettings, provider: Provider) -> str:
    if not all(isinstance(value, str) for value in wish.headers.values()):
        return 'Headers are an object of texts, such as {"X-Title": "Toolbench"}.'
    kept = list_kept_names(provider, wish.headers, wish.remove_headers)
    secret = ", ".join(list_secret_names(kept))
    if secret and is_rerouted(wish.network, provider):
        return f"With another proxy or CA file another machine may read {secret}: enter it again, or remove it."
    if secret and _is_other_host(wish, provider):
        return f"The address leads to another host: enter {secret} for it, or choose to remove what is stored."
    changed = wish.headers or wish.remove_headers
    return _find_decryption_error(provider) if kept and changed else ""


def _find_decryption_error(provider: Provider) -> str:
    try:
        read_endpoint_headers(provider)
    except KeyUnavailableError as error:
        return str(error)
    return ""


def _is_other_host(wish: ConnectionSettings, provider: Provider) -> bool:
    return not find_url_error(wish.base_url) and not is_same_origin(provider.base_url, wish.base_url)


def _list_field_errors(wish: ConnectionSettings, held: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each field with its error; "" if the field is valid."""
    simulated = wish.template == SIMULATED
    yield (
        "base_url",
        "" if simulated else find_url_error(wish.base_url, held) or find_simulated_url_error(wish.base_url),
    )
    yield "api_prefix", find_prefix_error(wish.api_prefix, held)
    known = simulated or not wish.template or wish.template in load_templates()
    yield "template", "" if known else f"There is no template {wish.template}."
    yield "wire", "" if wish.wire in Provider.Wire.values else f"Nothing here speaks {wish.wire}."
    reserved = ", ".join(sorted(RESERVED_KEYS & wish.option_defaults.keys()))
    yield "option_defaults", f"{reserved} belong to the loop and cannot be defaults." if reserved else ""
    yield "max_attempts", "" if 1 <= wish.max_attempts <= 10 else "Between 1 and 10 attempts are made."
    at_once = 1 <= wish.concurrency <= 1000
    yield "concurrency", "" if at_once else "Between 1 and 1000 trials can be in flight at once."
    is_budget = wish.budget_per_month is None or MIN_BUDGET <= wish.budget_per_month <= MAX_BUDGET
    sentence = f"A budget is {MIN_BUDGET} to {MAX_BUDGET:,.0f} dollars; leave it empty for none."
    yield "budget_per_month", "" if is_budget else sentence


def _save_provider(provider: Provider, wish: ConnectionSettings) -> Provider:
    provider.name = wish.name.strip()
    provider.template = wish.template
    provider.wire = wish.wire
    provider.base_url = wish.base_url.strip().rstrip("/")
    if wish.template == SIMULATED:
        provider.kind, provider.service, provider.base_url = Provider.Kind.SIMULATED, SERVICE, ""
    elif provider.kind in _KIND_BY_WIRE.values():
        provider.kind = _KIND_BY_WIRE[wish.wire]
    provider.api_prefix = wish.api_prefix.strip()
    provider.option_defaults = wish.option_defaults
    provider.connect_seconds = wish.connect_seconds
    provider.read_seconds = wish.read_seconds
    provider.max_attempts = wish.max_attempts
    provider.concurrency = wish.concurrency
    provider.budget_per_month = wish.budget_per_month
    provider.paused_reason = ""
    _set_key(provider, wish)
    change_headers(provider, wish.headers, wish.remove_headers)
    change_network(provider, wish.network)
    provider.save()
    return provider


def _set_key(provider: Provider, wish: ConnectionSettings) -> None:
    if key := wish.key.strip():
        provider.key_source, provider.key_encrypted, provider.key_env = Provider.KeySource.STORED, encrypt(key), ""
    elif variable := wish.key_env.strip():
        provider.key_source, provider.key_env = Provider.KeySource.ENVIRONMENT, variable
        provider.key_encrypted = None
    elif wish.remove_key or provider.key_encrypted is None:
        provider.key_source, provider.key_encrypted, provider.key_env = Provider.KeySource.NONE, None, ""
