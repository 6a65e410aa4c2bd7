"""The models that a provider lists itself: asked for by a person, kept until the web server restarts."""

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
    name: str
    there: bool


@dataclass(frozen=True, slots=True)
class ModelList:
    """What a provider answered: the names in its order, or why there are none and what to do."""

    names: tuple[str, ...]
    trouble: str
    listed_at: datetime


@dataclass(frozen=True, slots=True)
class OfferedModels:
    """The last list of a provider, narrowed by a search.

    Attributes:
        total: the number of names before the search.
        trouble: why the last list could not be had, and what to do; "" for a good one.
        listed_at: when it was asked for; None if it has not been since the web server started.
    """

    provider: Provider
    models: tuple[OfferedModel, ...] = ()
    total: int = 0
    search: str = ""
    trouble: str = ""
    listed_at: datetime | None = None


def request_models(provider_id: int) -> None:
    """Ask the provider for its list and keep the answer. Call it for a POST only: it sends the key. Must not be called
    from a running event loop. Raises: Provider.DoesNotExist."""
    provider = Provider.objects.get(pk=provider_id)
    try:
        listed = ModelList(list_provider_models(provider_id), "", timezone.now())
    except ModelListError as error:
        listed = ModelList((), str(error), timezone.now())
    cache.set(_build_cache_key(provider), listed, None)


def get_offered_models(provider_id: int, search: str = "") -> OfferedModels:
    """Return the list that the provider gave last; nothing is sent. At most two queries."""
    provider = Provider.objects.get(pk=provider_id)
    listed: ModelList | None = cache.get(_build_cache_key(provider))
    if listed is None:
        return OfferedModels(provider, search=search)
    there = set(provider.models.values_list("name", flat=True))
    wanted = [name for name in listed.names if search.lower() in name.lower()]
    offered = tuple(OfferedModel(name, name in there) for name in wanted[:MAX_MODELS_OFFERED])
    return OfferedModels(provider, offered, len(listed.names), search, listed.trouble, listed.listed_at)


def _build_cache_key(provider: Provider) -> str:
    """Another address or API is another list."""
    named = (provider.pk, provider.created_at, provider.base_url, provider.api_prefix, provider.wire)
    return f"models-{hashlib.sha256(repr(named).encode()).hexdigest()}"
