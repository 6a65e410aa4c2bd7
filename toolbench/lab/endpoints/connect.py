"""Actions on providers: create, edit and delete a provider."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from django.db import IntegrityError, transaction
from django.db.models import Q

from toolbench.engine.policy.layered_key import RESERVED_KEYS
from toolbench.engine.types import JsonObject
from toolbench.lab.accounts.audit import Action
from toolbench.lab.credentials.headers import change_headers, list_secret_names, list_unchanged_names
from toolbench.lab.credentials.keys import KeyUnavailableError, encrypt, read_endpoint_headers, read_endpoint_key
from toolbench.lab.credentials.provider_secrets import list_provider_secrets
from toolbench.lab.endpoints.network import (
    REROUTED_KEY_ERROR,
    NetworkSettings,
    change_network,
    is_rerouted,
    list_network_errors,
    list_network_secret_names,
)
from toolbench.lab.endpoints.rate_control import list_rate_errors
from toolbench.lab.endpoints.simulated import SIMULATED_TEMPLATE, find_simulated_url_error
from toolbench.lab.endpoints.urls import find_prefix_error, find_url_error, is_same_origin
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.metrics.cells import mark_list_priced_stale
from toolbench.lab.metrics.provider_budget import MAX_BUDGET, MIN_BUDGET
from toolbench.lab.models import Provider
from toolbench.lab.worker.completion import end_orphaned_trials, finish_runs
from toolbench.lab.worker.queue import notify_workers
from toolbench.providers.simulated.server import SERVER_NAME
from toolbench.providers.templates import load_templates

MAX_NAME_CHARACTERS = 80
MAX_ATTEMPTS, MAX_CONCURRENCY = 10, 1000
NAME_TAKEN = "There is a provider named {name} already: enter another name."
OTHER_ENDPOINT_TITLE = "Other endpoint"  # short, since a select is as wide as its longest option
_get_price_columns = attrgetter("template", "kind", "base_url")  # columns on which `find_model_price` depends
_KIND_BY_WIRE = {
    Provider.Wire.CHAT.value: Provider.Kind.OPENAI,
    Provider.Wire.ANTHROPIC.value: Provider.Kind.ANTHROPIC,
    Provider.Wire.RESPONSES.value: Provider.Kind.OPENAI,
}


class ConnectionSettingsError(InvalidFieldsError):
    """Raised if the settings of a provider are invalid."""


class BuiltinProviderError(ConnectionSettingsError):
    """Raised if the provider comes with Toolbench, so that it cannot be changed or deleted."""

    def __init__(self, provider: Provider) -> None:
        super().__init__({"": [f"{provider} comes with Toolbench. Connect another provider instead."]})


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Settings of a provider as a user enters them.

    Attributes:
        template: slug of a template; "" for none.
        api_prefix: path between the base URL and the paths of the API.
        key: a key to store; "" to leave a stored key unchanged.
        key_env: name of the variable of the worker's environment that contains the key; "" for none.
        remove_key: whether to delete a stored key; ignored if `key` or `key_env` is given.
        headers: values of headers to add or replace, by name.
        remove_headers: names of stored headers to delete.
        option_defaults: default parameters of every request.
        connect_seconds: timeout for connecting; None for the default.
        read_seconds: timeout for reading; None for the default.
        max_attempts: maximum number of times that one request is sent, at most MAX_ATTEMPTS.
        concurrency: maximum number of trials in flight, at most MAX_CONCURRENCY.
        adaptive: whether the concurrency limit follows the provider's answers, up to `concurrency`.
        requests_per_minute: limit over all workers; None for no limit.
        tokens_per_minute: limit over all workers; None for no limit.
        budget_per_month: dollars that trials and the gateway's requests may cost in a calendar month (UTC); None for no
            limit.
        network: proxy, certificates, query parameters and name of the header for the key.
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


def connect_provider(settings: ConnectionSettings) -> Provider:
    """Create a provider and return it.

    If there is a provider with the same name, template and host that has no usable key, it is edited instead.

    Raises:
        ConnectionSettingsError: the settings are invalid.
    """
    if existing := find_connected(settings):
        return edit_provider(existing.pk, settings)
    _check_settings(settings, Provider())
    return _save_provider(Provider(), settings)


def find_connected(settings: ConnectionSettings) -> Provider | None:
    """Return the provider that `connect_provider` would edit; None if it would create one."""
    existing = Provider.objects.filter(name=settings.name.strip()).first()
    return existing if existing is not None and _matches_without_key(existing, settings) else None


def edit_provider(provider_id: int, settings: ConnectionSettings) -> Provider:
    """Change the settings of a provider and notify the workers.

    The settings apply from the next trial on, but a run keeps those that were stored at its launch.

    Raises:
        BuiltinProviderError: the provider comes with Toolbench.
        ConnectionSettingsError: the settings are invalid.
        Provider.DoesNotExist: there is no such provider.
    """
    with transaction.atomic():
        provider = _lock_editable(provider_id)
        _check_settings(settings, provider)
        price_columns = _get_price_columns(provider)
        provider = _save_provider(provider, settings)
        if _get_price_columns(provider) != price_columns:
            mark_list_priced_stale(Q(config__provider=provider))
        transaction.on_commit(lambda: notify_workers([provider_id]))
    return provider


def is_builtin(provider: Provider) -> bool:
    """Return whether the provider comes with Toolbench, which sets its address and key at every start.

    If the provider is missing, the next start creates it.
    """
    return bool(provider.service) and provider.template != SIMULATED_TEMPLATE


def list_save_actions(settings: ConnectionSettings, before: Provider | None, after: Provider) -> list[Action]:
    """Return the actions for the audit list: a provider is added or changed, a secret entered, a stored one deleted.

    Secrets are keys, logins of proxies, private keys and headers, since any header may be secret.

    Args:
        settings: what the user entered.
        before: the provider before the change; None for a new one.
        after: the saved provider.
    """
    is_entered = bool(settings.key or settings.headers or settings.network.has_secret)
    is_removed = before is not None and bool(_list_stored_secret_names(before) - _list_stored_secret_names(after))
    return [
        Action.ADDED if before is None else Action.CHANGED,
        *([Action.KEY_ENTERED] if is_entered else []),
        *([Action.KEY_REMOVED] if is_removed else []),
    ]


def _list_stored_secret_names(provider: Provider) -> set[str]:
    """Return the names of the provider's stored secrets; those of headers in lower case."""
    headers = {f"header {name.lower()}" for name in provider.header_names}
    return headers | list_network_secret_names(provider) | ({"key"} if provider.key_encrypted is not None else set())


def delete_provider(provider_id: int) -> None:
    """Delete a provider; its runs are kept.

    Its queued trials end with an infrastructure error; trials in flight continue.

    Raises:
        BuiltinProviderError: the provider comes with Toolbench.
        Provider.DoesNotExist: there is no such provider.
    """
    with transaction.atomic():
        _lock_editable(provider_id).delete()
        end_orphaned_trials()
    finish_runs()


def _lock_editable(provider_id: int) -> Provider:
    """Lock the row of a provider that can be changed, and return it.

    Raises:
        BuiltinProviderError: the provider comes with Toolbench.
        Provider.DoesNotExist: there is no such provider.
    """
    provider = Provider.objects.select_for_update().get(pk=provider_id)
    if is_builtin(provider):
        raise BuiltinProviderError(provider)
    return provider


def _matches_without_key(provider: Provider, settings: ConnectionSettings) -> bool:
    """Return whether the provider has the template and host of the settings, and no usable key."""
    is_same = settings.template in load_templates() and provider.template == settings.template
    return is_same and is_same_origin(provider.base_url, settings.base_url) and not _has_key(provider)


def _has_key(provider: Provider) -> bool:
    """Return whether the provider has a key that can be read."""
    try:
        return bool(read_endpoint_key(provider))
    except KeyUnavailableError:
        return False


def _check_settings(settings: ConnectionSettings, provider: Provider) -> None:
    """Check all settings.

    Args:
        settings: what the user entered.
        provider: the stored provider; a new provider has no primary key.

    Raises:
        ConnectionSettingsError: some settings are invalid; the exception has the error of each field.
    """
    entered_headers = (str(settings.headers[name]) for name in list_secret_names(settings.headers))
    entered = (settings.key, os.environ.get(settings.key_env.strip(), ""), *entered_headers)
    secrets = list_provider_secrets(provider, entered)
    field_errors = [
        ("name", _find_name_error(settings.name.strip(), provider.pk)),
        ("template", _find_kind_error(settings, provider)),
        ("wire", _find_wire_error(settings, provider)),
        ("key", _find_key_error(settings, provider)),
        ("headers", _find_header_error(settings, provider)),
        *_list_field_errors(settings, secrets),
        *list_network_errors(settings.network, provider, secrets),
    ]
    errors = {name: [sentence] for name, sentence in field_errors if sentence}
    if "base_url" in errors and not settings.name.strip():
        del errors["name"]  # a blank name is filled in from the address
    if errors:
        raise ConnectionSettingsError(errors)


def _find_kind_error(settings: ConnectionSettings, provider: Provider) -> str:
    if provider.pk is None or (settings.template == SIMULATED_TEMPLATE) == (provider.kind == Provider.Kind.SIMULATED):
        return ""
    return "A provider cannot change between simulated and real models: connect another provider instead."


def _find_wire_error(settings: ConnectionSettings, provider: Provider) -> str:
    is_changed = provider.kind == Provider.Kind.SIMULATED and provider.pk is not None and settings.wire != provider.wire
    if not is_changed or not provider.models.exists():
        return ""
    return "Simulated models have other names in another API: connect another simulated provider for it."


def _find_name_error(name: str, provider_id: int | None) -> str:
    if not 0 < len(name) <= MAX_NAME_CHARACTERS:
        return f"Enter a name of at most {MAX_NAME_CHARACTERS} characters."
    is_taken = Provider.objects.filter(name=name).exclude(pk=provider_id or 0).exists()
    return NAME_TAKEN.format(name=name) if is_taken else ""


def _find_key_error(settings: ConnectionSettings, provider: Provider) -> str:
    """Return why the stored key cannot be kept; "" if it can be kept, or is replaced or removed.

    A stored key is sent only to the host for which it was entered, with the network settings of that time.
    """
    is_replaced = bool(settings.key.strip() or settings.key_env.strip() or settings.remove_key)
    if provider.key_encrypted is None or is_replaced:
        return ""
    if _is_other_host(settings, provider):
        return "The address has another host: enter the key for it, or choose to remove the stored key."
    return REROUTED_KEY_ERROR if is_rerouted(settings.network, provider) else ""


def _find_header_error(settings: ConnectionSettings, provider: Provider) -> str:
    """Return why the entered headers are invalid or why stored headers cannot be kept, else ""."""
    if not all(isinstance(value, str) for value in settings.headers.values()):
        return 'Headers are a JSON object with texts as values, such as {"X-Title": "Toolbench"}.'
    unchanged = list_unchanged_names(provider, settings.headers, settings.remove_headers)
    secret_names = ", ".join(list_secret_names(unchanged))
    if secret_names and is_rerouted(settings.network, provider):
        return f"With another proxy or CA file, another machine may read {secret_names}: enter it again, or remove it."
    if secret_names and _is_other_host(settings, provider):
        return f"The address has another host: enter {secret_names} for it, or choose to remove the stored header."
    has_changes = settings.headers or settings.remove_headers
    return _find_decryption_error(provider) if unchanged and has_changes else ""


def _find_decryption_error(provider: Provider) -> str:
    """Return why the stored headers cannot be read; "" if they can."""
    try:
        read_endpoint_headers(provider)
    except KeyUnavailableError as error:
        return str(error)
    return ""


def _is_other_host(settings: ConnectionSettings, provider: Provider) -> bool:
    """Return whether the entered base URL is valid and has another origin than the stored one."""
    return not find_url_error(settings.base_url) and not is_same_origin(provider.base_url, settings.base_url)


def _list_field_errors(settings: ConnectionSettings, secrets: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the name of each field with its error; the error is "" if the field is valid."""
    is_simulated = settings.template == SIMULATED_TEMPLATE
    url_error = find_url_error(settings.base_url, secrets) or find_simulated_url_error(settings.base_url)
    yield "base_url", "" if is_simulated else url_error
    yield "api_prefix", find_prefix_error(settings.api_prefix, secrets)
    reserved_names = ", ".join(sorted(RESERVED_KEYS & settings.option_defaults.keys()))
    has_known_template = is_simulated or not settings.template or settings.template in load_templates()
    has_valid_budget = settings.budget_per_month is None or MIN_BUDGET <= settings.budget_per_month <= MAX_BUDGET
    checks = (
        ("template", has_known_template, f"There is no template {settings.template}: choose one of the list."),
        ("wire", settings.wire in Provider.Wire.values, f"There is no API named {settings.wire}: choose one."),
        ("option_defaults", not reserved_names, f"Toolbench sets {reserved_names} itself: remove them here."),
        ("max_attempts", 1 <= settings.max_attempts <= MAX_ATTEMPTS, f"Enter 1 to {MAX_ATTEMPTS} attempts."),
        (
            "concurrency",
            1 <= settings.concurrency <= MAX_CONCURRENCY,
            f"Enter 1 to {MAX_CONCURRENCY} trials in flight.",
        ),
        (
            "budget_per_month",
            has_valid_budget,
            f"Enter {MIN_BUDGET} to {MAX_BUDGET:,.0f} dollars; leave the budget empty for no limit.",
        ),
    )
    yield from ((name, "" if is_valid else sentence) for name, is_valid, sentence in checks)
    yield from list_rate_errors(settings.requests_per_minute, settings.tokens_per_minute)


def _save_provider(provider: Provider, settings: ConnectionSettings) -> Provider:
    """Apply the settings to the provider, clear `paused_reason`, save the provider and return it.

    Raises:
        ConnectionSettingsError: another provider has just got this name.
    """
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
    try:
        with transaction.atomic():
            provider.save()
    except IntegrityError as error:
        raise ConnectionSettingsError({"name": [NAME_TAKEN.format(name=provider.name)]}) from error
    return provider


def _set_key(provider: Provider, settings: ConnectionSettings) -> None:
    """Set the columns of the key.

    An entered key is stored. Otherwise, the key comes from the entered variable. Without both, a stored key is kept
    unless it is to be removed.
    """
    if key := settings.key.strip():
        provider.key_source, provider.key_encrypted, provider.key_env = Provider.KeySource.STORED, encrypt(key), ""
    elif variable := settings.key_env.strip():
        provider.key_source, provider.key_env = Provider.KeySource.ENVIRONMENT, variable
        provider.key_encrypted = None
    elif settings.remove_key or provider.key_encrypted is None:
        provider.key_source, provider.key_encrypted, provider.key_env = Provider.KeySource.NONE, None, ""
