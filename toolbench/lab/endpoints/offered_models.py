"""The models that a provider lists, requested by a person and kept until the web server restarts."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from django.core.cache import cache
from django.utils import timezone

from toolbench.lab.endpoints.connect import ModelListError, list_provider_models
from toolbench.lab.models import Provider

MAX_MODELS_OFFERED = 300


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """One model that a provider lists.

    Attributes:
        there: whether the model is added to the provider already.
    """

    name: str
    there: bool


@dataclass(frozen=True, slots=True)
class ModelList:
    """The answer of a provider to the request for its models.

    Attributes:
        names: the names in the provider's order; () after an error.
        trouble: why the list could not be read, and what to do; "" without an error.
    """

    names: tuple[str, ...]
    trouble: str
    listed_at: datetime


@dataclass(frozen=True, slots=True)
class OfferedModels:
    """The last list of a provider, filtered by a search.

    Attributes:
        models: at most `MAX_MODELS_OFFERED` of the models that match.
        total: the number of names before the search.
        trouble: why the last list could not be read, and what to do; "" without an error.
        listed_at: when the list was requested; None if it was not since the web server started.
    """

    provider: Provider
    models: tuple[OfferedModel, ...] = ()
    total: int = 0
    search: str = ""
    trouble: str = ""
    listed_at: datetime | None = None


def request_models(provider_id: int) -> None:
    """Request the provider's list of models and keep the answer, also an error.

    Call it for a POST only, because it sends the key. Must not be called from a running event loop.

    Raises:
        Provider.DoesNotExist: there is no such provider.
    """
    provider = Provider.objects.get(pk=provider_id)
    try:
        listed = ModelList(list_provider_models(provider_id), "", timezone.now())
    except ModelListError as error:
        listed = ModelList((), str(error), timezone.now())
    cache.set(_build_cache_key(provider), listed, None)


def get_offered_models(provider_id: int, search: str = "") -> OfferedModels:
    """Return the last list of a provider, filtered by a search. At most two queries; no request is sent.

    Raises:
        Provider.DoesNotExist: there is no such provider.
    """
    provider = Provider.objects.get(pk=provider_id)
    listed: ModelList | None = cache.get(_build_cache_key(provider))
    if listed is None:
        return OfferedModels(provider, search=search)
    there = set(provider.models.values_list("name", flat=True))
    names = [name for name in listed.names if search.lower() in name.lower()]
    offered = tuple(OfferedModel(name, name in there) for name in names[:MAX_MODELS_OFFERED])
    return OfferedModels(provider, offered, len(listed.names), search, listed.trouble, listed.listed_at)


def _build_cache_key(provider: Provider) -> str:
    """Return the key of the list; it changes with the address and the API, whose list may differ."""
    address = (provider.base_url, provider.api_prefix, provider.wire, provider.query)
    network = (provider.proxy_url, provider.ca_pem, provider.client_certificate)
    named = (provider.pk, provider.created_at, *address, *network)
    return f"models-{hashlib.sha256(repr(named).encode()).hexdigest()}"
