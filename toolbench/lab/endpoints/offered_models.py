"""Models of a provider: the list that its API returns, and models that a user adds.

The API's list is kept until the web server restarts, or until the address, wire format, key, headers or network
settings of the provider change.
"""

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.core.cache import cache
from django.utils import timezone

from toolbench.engine.policy.presets import list_model_workarounds
from toolbench.lab.credentials.keys import KeyUnavailableError
from toolbench.lab.endpoints.canonical_models import normalise_canonical_name
from toolbench.lab.endpoints.simulated import build_simulated_models
from toolbench.lab.models import Model, Provider
from toolbench.lab.traces.step_facts import to_column_text
from toolbench.lab.worker.trial_plan import (
    ServedElsewhereError,
    ServerNotReadyError,
    build_model_endpoint,
    load_provider_access,
)
from toolbench.providers.endpoint import MODEL_PLACEHOLDER, Endpoint
from toolbench.providers.model_list import ProviderRequestError, list_models

MAX_MODELS_OFFERED = 300  # models of one list that the page shows
MAX_MODEL_NAME_CHARACTERS = 200
LIST_TIMEOUT_SECONDS = 15.0


class ModelListError(Exception):
    """Raised if a provider returns no list of models; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """One model that a provider lists.

    Attributes:
        is_added: whether the provider has the model already, retired or not.
    """

    name: str
    is_added: bool


@dataclass(frozen=True, slots=True)
class ModelList:
    """The answer of a provider to the request for its models.

    Attributes:
        names: the names in the provider's order; () after an error.
        error: why the list could not be read, and what to do; "" without an error.
        listed_at: when the answer or the error was received.
    """

    names: tuple[str, ...]
    error: str
    listed_at: datetime


@dataclass(frozen=True, slots=True)
class OfferedModels:
    """The last list of a provider, filtered by a search.

    Attributes:
        models: the models that match, at most `MAX_MODELS_OFFERED`, in the provider's order.
        total: the number of models in the whole list.
        search: the text that the names contain, in any case; "" for no search.
        error: why the last list could not be read, and what to do; "" without an error.
        listed_at: when the last list or error was received; None if no list was requested with these settings since the
            web server started.
        added_count: the number of models that are added to the provider, retired ones not counted.
    """

    provider: Provider
    models: tuple[OfferedModel, ...] = ()
    total: int = 0
    search: str = ""
    error: str = ""
    listed_at: datetime | None = None
    added_count: int = 0


def request_models(provider_id: int) -> None:
    """Request the provider's list of models and keep the answer or the error.

    Names that no model can have (`_is_model_name`) are left out.

    Call it for a POST only, because it sends the key. Must not be called from a running event loop.

    Raises:
        Provider.DoesNotExist: there is no such provider.
    """
    provider = Provider.objects.get(pk=provider_id)
    try:
        names = tuple(filter(_is_model_name, list_provider_models(provider_id)))
        model_list = ModelList(names, "", timezone.now())
    except ModelListError as error:
        model_list = ModelList((), to_column_text(error), timezone.now())
    cache.set(_build_cache_key(provider), model_list, None)


def get_offered_models(provider_id: int, search: str = "") -> OfferedModels:
    """Return the last list of a provider, filtered by a search, with two queries and no request.

    Raises:
        Provider.DoesNotExist: there is no such provider.
    """
    provider = Provider.objects.get(pk=provider_id)
    model_list: ModelList | None = cache.get(_build_cache_key(provider))
    is_retired_by_name = dict(provider.models.values_list("name", "retired"))
    added_count = sum(not is_retired for is_retired in is_retired_by_name.values())
    if model_list is None:
        return OfferedModels(provider, search=search, added_count=added_count)
    names = [name for name in model_list.names if search.lower() in name.lower()]
    return OfferedModels(
        provider=provider,
        models=tuple(OfferedModel(name, name in is_retired_by_name) for name in names[:MAX_MODELS_OFFERED]),
        total=len(model_list.names),
        search=search,
        error=model_list.error,
        listed_at=model_list.listed_at,
        added_count=added_count,
    )


def _build_cache_key(provider: Provider) -> str:
    """Return the cache key of the list.

    The cache key changes with address, wire format, API key, headers and network settings, since another endpoint or
    account may have another list. Of an API key from the environment, only the name of the variable counts.
    """
    address = (provider.base_url, provider.api_prefix, provider.wire, provider.query)
    access = (provider.key_source, provider.key_env, provider.key_header, _read_bytes(provider.key_encrypted))
    headers = (provider.header_names, _read_bytes(provider.headers_encrypted))
    network = (
        provider.proxy_url,
        provider.ca_pem,
        provider.client_certificate,
        _read_bytes(provider.network_encrypted),
    )
    key_parts = (provider.pk, provider.created_at, *address, *access, *headers, *network)
    return f"models-{hashlib.sha256(repr(key_parts).encode()).hexdigest()}"


def _read_bytes(column: bytes | memoryview | None) -> bytes:
    return bytes(column or b"")


def list_provider_models(provider_id: int) -> tuple[str, ...]:
    """Request the list of models from the provider's API and return the names in the API's order.

    Must not be called from a running event loop.

    Raises:
        ModelListError: the API has no such list, the key or the local server is not available, or the request failed.
        Provider.DoesNotExist: there is no such provider.
    """
    provider = Provider.objects.get(pk=provider_id)
    if MODEL_PLACEHOLDER in provider.api_prefix:
        raise ModelListError("This API does not list deployments: enter the names of your deployments below.")
    try:
        endpoint = build_model_endpoint(load_provider_access(provider), provider.service, "")
        return asyncio.run(_fetch_names(endpoint))
    except (KeyUnavailableError, ServedElsewhereError, ServerNotReadyError) as error:
        raise ModelListError(str(error)) from error
    except ProviderRequestError as error:
        status = f"HTTP {error.error.status}: " if error.error.status else ""
        hint = f" {error.error.hint}" if error.error.hint else ""
        raise ModelListError(f"{status}{error.error.message}{hint}") from error


async def _fetch_names(endpoint: Endpoint) -> tuple[str, ...]:
    """Request the names of the models within `LIST_TIMEOUT_SECONDS`, since a page waits for them.

    Raises:
        ModelListError: the time limit has passed.
        ProviderRequestError: the request failed.
    """
    try:
        async with asyncio.timeout(LIST_TIMEOUT_SECONDS):
            return await list_models(endpoint)
    except TimeoutError:
        raise ModelListError(
            f"The provider returned no list of models within {LIST_TIMEOUT_SECONDS:g} s: try again, or enter a name."
        ) from None


def add_models(provider_id: int, names: Iterable[str]) -> int:
    """Add models that the provider does not have yet, with the engine's workarounds for their names.

    Names are trimmed. A name is ignored if it is blank, is longer than `MAX_MODEL_NAME_CHARACTERS` or has characters
    that cannot be shown. At a simulated provider, a name is also ignored if it is not that of a simulated model.

    Returns:
        The number of models added.

    Raises:
        Provider.DoesNotExist: there is no such provider.
    """
    provider = Provider.objects.get(pk=provider_id)
    valid_names = dict.fromkeys(filter(_is_model_name, map(str.strip, names)))
    existing_names = set(provider.models.values_list("name", flat=True))
    new_names = [name for name in valid_names if name not in existing_names]
    if provider.kind == Provider.Kind.SIMULATED:
        simulated_models = build_simulated_models(provider)
        models = [simulated_models[name] for name in new_names if name in simulated_models]
    else:
        models = [_build_model(provider, name) for name in new_names]
    return len(Model.objects.bulk_create(models, ignore_conflicts=True))


def list_missing_names(provider_id: int, names: Iterable[str]) -> list[str]:
    """Return those of the names that no model of the provider has, trimmed and without repeats and blank names."""
    existing_names = set(Model.objects.filter(provider=provider_id).values_list("name", flat=True))
    return [name for name in dict.fromkeys(map(str.strip, names)) if name and name not in existing_names]


def _is_model_name(text: str) -> bool:
    """Return whether a text can be the name of a model.

    NUL and lone surrogates, which are not printable, could not be stored.
    """
    return 0 < len(text) <= MAX_MODEL_NAME_CHARACTERS and text.isprintable()


def _build_model(provider: Provider, name: str) -> Model:
    return Model(
        provider=provider,
        name=name,
        # OpenRouter's suffixes, such as :free, are not part of the canonical name.
        canonical=normalise_canonical_name(name.partition(":")[0] if provider.template == "openrouter" else name),
        workarounds=list(list_model_workarounds(name)),
        mixed_upstreams=name.endswith(":nitro"),  # OpenRouter's suffix for the fastest upstream of the moment
    )
