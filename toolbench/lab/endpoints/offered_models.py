"""The models that a provider lists, requested by a user and kept until the web server restarts."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from django.core.cache import cache
from django.utils import timezone

from toolbench.lab.endpoints.connect import ModelListError, list_provider_models
from toolbench.lab.models import Provider

MAX_MODELS_OFFERED = 300  # shown of one list


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """One model that a provider lists.

    Attributes:
        is_added: whether the model is added to the provider already.
    """

    name: str
    is_added: bool


@dataclass(frozen=True, slots=True)
class ModelList:
    """The answer of a provider to the request for its models.

    Attributes:
        names: the names in the provider's order; () after an error.
        error: why the list could not be read, and what to do; "" without an error.
    """

    names: tuple[str, ...]
    error: str
    listed_at: datetime


@dataclass(frozen=True, slots=True)
class OfferedModels:
    """The last list of a provider, filtered by a search.

    Attributes:
        models: the models that match, at most `MAX_MODELS_OFFERED`, in the provider's order.
        total: the number of models before the search.
        search: the text that the names contain, in any case; "" for no search.
        error: why the last list could not be read, and what to do; "" without an error.
        listed_at: when the list was requested; None if no list was requested since the web server started.
    """

    provider: Provider
    models: tuple[OfferedModel, ...] = ()
    total: int = 0
    search: str = ""
    error: str = ""
    listed_at: datetime | None = None


def request_models(provider_id: int) -> None:
    """Request the provider's list of models and keep the answer or the error.

    Call it for a POST only, because it sends the key. Must not be called from a running event loop.

    Raises:
        Provider.DoesNotExist: there is no such provider.
    """
    provider = Provider.objects.get(pk=provider_id)
    try:
        model_list = ModelList(list_provider_models(provider_id), "", timezone.now())
    except ModelListError as error:
        model_list = ModelList((), str(error), timezone.now())
    cache.set(_build_cache_key(provider), model_list, None)


def get_offered_models(provider_id: int, search: str = "") -> OfferedModels:
    """Return the last list of a provider, filtered by a search, with at most two queries and no request.

    Raises:
        Provider.DoesNotExist: there is no such provider.
    """
    provider = Provider.objects.get(pk=provider_id)
    model_list: ModelList | None = cache.get(_build_cache_key(provider))
    if model_list is None:
        return OfferedModels(provider, search=search)
    added_names = set(provider.models.values_list("name", flat=True))
    names = [name for name in model_list.names if search.lower() in name.lower()]
    models = tuple(OfferedModel(name, name in added_names) for name in names[:MAX_MODELS_OFFERED])
    return OfferedModels(provider, models, len(model_list.names), search, model_list.error, model_list.listed_at)


def _build_cache_key(provider: Provider) -> str:
    """Return the cache key of the list, which changes with every setting that may change the list."""
    address = (provider.base_url, provider.api_prefix, provider.wire, provider.query)
    network = (provider.proxy_url, provider.ca_pem, provider.client_certificate)
    key_parts = (provider.pk, provider.created_at, *address, *network)
    return f"models-{hashlib.sha256(repr(key_parts).encode()).hexdigest()}"
