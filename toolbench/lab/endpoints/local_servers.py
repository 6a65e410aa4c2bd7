"""Detection of model servers that a user has started on this machine, at the servers' usual ports."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from django.core.cache import cache

from toolbench.lab.models import Provider
from toolbench.providers.endpoint import Endpoint, Timeouts
from toolbench.providers.model_list import ProviderRequestError, list_models
from toolbench.providers.templates import ProviderTemplate, load_templates

LIST_TIMEOUTS = Timeouts(connect=0.3, read=1.5, deadline=2.0)  # seconds
CACHE_KEY = "local-servers"


@dataclass(frozen=True, slots=True)
class DetectedServer:
    """The result of the detection for one kind of server.

    Attributes:
        model_count: the number of models that the server lists; None if no server returned a list.
        provider_id: id of a provider that was created from the template; None if there is none.
    """

    template: ProviderTemplate
    model_count: int | None
    provider_id: int | None


def scan_local_servers() -> None:
    """Request the list of models from every usual port and keep the results until the web server restarts.

    Call it for a POST only, because it sends requests. Must not be called from a running event loop.
    """
    cache.set(CACHE_KEY, asyncio.run(_scan()), None)


def get_detected_servers(providers: Iterable[Provider]) -> tuple[DetectedServer, ...]:
    """Return the results of the last detection, without sending a request.

    Args:
        providers: all providers.

    Returns:
        One result for each kind of server, also if none answered; () if there was no detection since the web server
            started.
    """
    model_counts: dict[str, int | None] | None = cache.get(CACHE_KEY)
    if model_counts is None:
        return ()
    provider_ids = {provider.template: provider.pk for provider in providers}
    return tuple(
        DetectedServer(template, model_counts.get(template.slug), provider_ids.get(template.slug))
        for template in _list_scannable_templates()
    )


def list_server_titles() -> tuple[str, ...]:
    """Return the names of the kinds of servers that can be detected."""
    return tuple(template.title for template in _list_scannable_templates())


def _list_scannable_templates() -> tuple[ProviderTemplate, ...]:
    return tuple(template for template in load_templates().values() if template.probe_port)


async def _scan() -> dict[str, int | None]:
    templates = _list_scannable_templates()
    counts = await asyncio.gather(*(_count_models(template) for template in templates))
    return {template.slug: count for template, count in zip(templates, counts, strict=True)}


async def _count_models(template: ProviderTemplate) -> int | None:
    endpoint = Endpoint(base_url=template.base_url, model="", api_prefix=template.api_prefix, timeouts=LIST_TIMEOUTS)
    try:
        async with asyncio.timeout(LIST_TIMEOUTS.deadline):
            return len(await list_models(endpoint))
    except (ProviderRequestError, TimeoutError):
        return None
