"""Providers of `manage.py eval`: update of OpenRouter from the environment, and checks before a launch."""

import socket
from collections.abc import Iterable, Mapping

from django.db import transaction
from django.db.models import Q

from toolbench.engine.types import JsonObject
from toolbench.evals.name_filter import filter_by_names
from toolbench.installation import build_command
from toolbench.lab import builtin_data
from toolbench.lab.credentials.headers import HEADER_FIELDS, change_headers, list_secret_names
from toolbench.lab.credentials.keys import (
    KeyNotInEnvironmentError,
    KeyUnavailableError,
    read_endpoint_headers,
    read_endpoint_key,
    read_network_access,
)
from toolbench.lab.credentials.provider_secrets import list_environment_secrets, list_provider_secrets
from toolbench.lab.endpoints.urls import find_prefix_error, find_url_error, is_same_origin
from toolbench.lab.management.eval.names import EvalError
from toolbench.lab.management.eval.options import VARIABLE_PREFIX, EvalOptions
from toolbench.lab.management.eval.request import OPENROUTER
from toolbench.lab.metrics.cells import mark_list_priced_stale
from toolbench.lab.models import Model, Provider, ServiceAddress

KEY_VARIABLE = f"{VARIABLE_PREFIX}API_KEY"
_HEADER_BY_VARIABLE = {"HTTP_REFERER": "HTTP-Referer", "X_TITLE": "X-Title"}


def update_openrouter(environment: Mapping[str, str], options: EvalOptions) -> tuple[str, ...]:
    """Set the address, prefix and headers of the OpenRouter providers to those in the environment.

    The built-in data is loaded first if there is no OpenRouter provider. Nothing changes if the environment has no key
    or the options select only other providers.

    Returns:
        A sentence for every changed provider, which names what was changed.

    Raises:
        EvalError: the address or the prefix in the environment cannot be used, or stored headers cannot be decrypted.
    """
    if not environment.get(KEY_VARIABLE, "").strip() or (options.provider and not _has_openrouter(options.provider)):
        return ()
    if not Provider.objects.filter(template=OPENROUTER).exists():
        builtin_data.load_builtin_data()
    sentences: list[str] = []
    for provider in Provider.objects.filter(template=OPENROUTER):
        if changed := _update_provider(provider, environment):
            sentences.append(f"{provider.name} now has {', '.join(changed)} from the environment.")
    return tuple(sentences)


def _has_openrouter(words: str) -> bool:
    """Return whether the filter of `--provider` selects OpenRouter."""
    return bool(filter_by_names([OPENROUTER], words, names=lambda name: (name,)))


@transaction.atomic
def _update_provider(provider: Provider, environment: Mapping[str, str]) -> list[str]:
    """Change a provider to the values in the environment.

    Returns:
        The names of the changed columns, and "headers" if headers were changed.

    Raises:
        EvalError: as in `update_openrouter`.
    """
    columns = _find_changed_columns(provider, environment)
    for name, value in columns.items():
        setattr(provider, name, value)
    headers = _find_changed_headers(provider, environment)
    change_headers(provider, headers)
    provider.save(update_fields=[*columns, *(HEADER_FIELDS if headers else ())])
    if "base_url" in columns:  # whether the address is private decides what an unlisted model costs
        mark_list_priced_stale(Q(config__provider=provider))
    return [*sorted(columns), *(["headers"] if headers else [])]


def _find_changed_columns(provider: Provider, environment: Mapping[str, str]) -> JsonObject:
    columns: JsonObject = {}
    if environment.get(f"{VARIABLE_PREFIX}BASE_URL", "").strip():
        columns["base_url"] = _read_base_url(environment, provider)
    if f"{VARIABLE_PREFIX}API_PREFIX" in environment:  # unlike an address, a prefix may be empty
        columns["api_prefix"] = environment[f"{VARIABLE_PREFIX}API_PREFIX"].strip()
        if problem := find_prefix_error(
            columns["api_prefix"], list_provider_secrets(provider, list_environment_secrets(environment))
        ):
            raise EvalError(f"{VARIABLE_PREFIX}API_PREFIX cannot be used. {problem}")
    return {name: value for name, value in columns.items() if value != getattr(provider, name)}


def _read_base_url(environment: Mapping[str, str], provider: Provider) -> str:
    text = environment[f"{VARIABLE_PREFIX}BASE_URL"]
    problem = find_url_error(text, list_provider_secrets(provider, list_environment_secrets(environment)))
    has_secret = provider.key_encrypted is not None or list_secret_names(provider.header_names)
    if not problem and has_secret and not is_same_origin(text, provider.base_url):
        problem = f"The stored key or headers of {provider.name} are for another host. Change the address on its page."
    if problem:
        raise EvalError(f"{VARIABLE_PREFIX}BASE_URL cannot be used. {problem}")
    return text.strip().rstrip("/")


def _find_changed_headers(provider: Provider, environment: Mapping[str, str]) -> JsonObject:
    headers = {
        name: environment.get(VARIABLE_PREFIX + variable, "").strip() for variable, name in _HEADER_BY_VARIABLE.items()
    }
    try:
        stored = read_endpoint_headers(provider)
    except KeyUnavailableError as error:
        raise EvalError(str(error)) from error
    return {name: value for name, value in headers.items() if value and value != stored.get(name)}


def check_reachable(models: Iterable[Model]) -> None:
    """Check that the secrets of the providers can be read and that their local servers run on this host.

    Raises:
        EvalError: a key, a header or a secret of the network access cannot be read, or a local server does not run on
            this host.
    """
    models = tuple(models)
    for provider in {model.provider_id: model.provider for model in models}.values():
        try:
            read_endpoint_key(provider)
            read_endpoint_headers(provider)
            read_network_access(provider)
        except KeyNotInEnvironmentError as error:
            raise EvalError(
                f"{provider.key_env} is not set, and {provider.name} needs it. Set this variable."
            ) from error
        except KeyUnavailableError as error:
            raise EvalError(str(error)) from error
    for name in dict.fromkeys(_get_service(model) for model in models):
        _check_service(name)


def _get_service(model: Model) -> str:
    """Return the local server that serves the model; "" if its provider has an address."""
    return "" if model.provider.base_url else model.provider.service


def _check_service(name: str) -> None:
    """Check that a local server runs on this host; "" passes.

    Raises:
        EvalError: the server is not running, or runs on another host.
    """
    if not name:
        return
    address = ServiceAddress.objects.filter(name=name).first()
    if address is None:
        raise EvalError(f"The local server {name} is not running. Start it with `{build_command('up')}`.")
    if address.host != socket.gethostname():
        raise EvalError(
            f"The local server {name} runs on {address.host} and answers only on that machine. Run the command there."
        )


def clear_paused_reason(providers: Iterable[Provider]) -> None:
    """Clear `Provider.paused_reason`, such as a missing key. Call it after `check_reachable` has read the keys."""
    Provider.objects.filter(pk__in=[provider.pk for provider in providers]).update(paused_reason="")
