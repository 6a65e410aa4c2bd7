"""Aliases with the endpoints and settings that the gateway uses for them now."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from toolbench.engine.policy.settings import Policy, resolve_policy
from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.types import JsonObject
from toolbench.evals.prices import Price
from toolbench.lab.credentials.keys import KeyUnavailableError
from toolbench.lab.models import ModelAlias, Provider, ProviderPace
from toolbench.lab.paid_requests import find_model_price
from toolbench.lab.worker.pacing.state import FIRST_LIMIT
from toolbench.lab.worker.trial_plan import (
    ServedElsewhereError,
    ServerNotReadyError,
    build_model_endpoint,
    load_provider_access,
)
from toolbench.providers.endpoint import Endpoint

MAX_CACHED_POLICIES = 200  # policies that are cached for one alias; at this number, all of them are dropped


@dataclass(frozen=True, slots=True)
class ServedAlias:
    """Alias with the endpoint and settings that the gateway uses for it now.

    Attributes:
        endpoint: the endpoint of the model; None if no request can be sent.
        refusal: why no request can be sent; empty if requests can be sent.
        concurrency: present concurrency limit of the provider.
        layers: (name, patch) of each policy layer; later layers override earlier ones.
        repairs: whether the gateway re-prompts once after an invalid call.
        fallbacks: names of the aliases that are tried after a failure, in order.
        keep_percent: percentage of requests that get a trace.
        keep_bodies: whether traces contain the bodies.
        price: price of the model's tokens; None if it is unknown.
        policies: cache of `resolve_policy`, by the tool choice as JSON text.
    """

    name: str
    provider_id: int
    model_name: str
    simulated: bool
    endpoint: Endpoint | None
    refusal: str
    concurrency: int
    layers: tuple[tuple[str, JsonObject], ...]
    repairs: bool
    fallbacks: tuple[str, ...]
    keep_percent: int
    keep_bodies: bool
    price: Price | None = None
    policies: dict[str, Policy] = field(default_factory=dict, compare=False, repr=False)

    def resolve_policy(self, tool_choice: RequestChoice) -> Policy:
        """Return the policy for a request with this tool choice."""
        key = json.dumps(tool_choice, sort_keys=True)
        if key not in self.policies:
            if len(self.policies) >= MAX_CACHED_POLICIES:
                self.policies.clear()
            gateway_layer = {
                "tool_choice": tool_choice,
                "max_turns": 2 if self.repairs else 1,
                "repair_request": self.repairs,
                "tool_use_mode": "relaxed",
                "tool_failure_policy": "tolerated",
            }
            self.policies[key] = resolve_policy((*self.layers, ("gateway", gateway_layer))).policy
        return self.policies[key]


def load_served_aliases() -> Mapping[str, ServedAlias]:
    """Return all aliases by name.

    One query reads the aliases. One more is sent for each alias whose provider uses local servers.
    """
    rows = ModelAlias.objects.select_related("model__provider__pace")
    return {row.name: _build_served_alias(row) for row in rows}


def _build_served_alias(row: ModelAlias) -> ServedAlias:
    provider, endpoint, refusal = row.model.provider, None, ""
    try:
        service = "" if provider.base_url else provider.service
        endpoint = build_model_endpoint(load_provider_access(provider), service, row.model.name)
    except (KeyUnavailableError, ServedElsewhereError, ServerNotReadyError) as error:
        refusal = str(error)
    return ServedAlias(
        name=row.name,
        provider_id=provider.pk,
        model_name=row.model.name,
        simulated=provider.kind == Provider.Kind.SIMULATED,
        endpoint=endpoint,
        refusal=refusal,
        concurrency=_find_concurrency(provider),
        layers=tuple((name, patch) for name, patch in row.layers),
        repairs=row.repairs,
        fallbacks=tuple(row.fallbacks),
        keep_percent=row.keep_percent,
        keep_bodies=row.keep_bodies,
        price=find_model_price(provider, row.model.name, row.model.price),
    )


def _find_concurrency(provider: Provider) -> int:
    """Return the concurrency limit, as concurrency_limit.sql computes it for trials."""
    if not provider.adaptive:
        return provider.concurrency
    pace: ProviderPace | None = getattr(provider, "pace", None)  # no row before the first report of a worker session
    return min(provider.concurrency, pace.concurrency if pace else FIRST_LIMIT)
