"""Simulated providers: a built-in one for each wire format, and those that users connect.

The results of all simulated providers are labelled as simulated.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from toolbench.evals.scenarios import list_scenarios
from toolbench.lab.endpoints.urls import is_same_origin
from toolbench.lab.models import Model, Provider, ServiceAddress
from toolbench.providers.simulated.personas import load_personas
from toolbench.providers.simulated.server import SERVER_NAME
from toolbench.providers.simulated.wire_formats import CHAT, MESSAGES, RESPONSES

SIMULATED_TEMPLATE = "simulated"  # template of simulated providers that a user connected
SIMULATED_TITLE = "Simulated models"
_PREFIX_BY_WIRE = {
    Provider.Wire.CHAT.value: CHAT.name_prefix,
    Provider.Wire.ANTHROPIC.value: MESSAGES.name_prefix,
    Provider.Wire.RESPONSES.value: RESPONSES.name_prefix,
}


def find_simulated_url_error(address: str) -> str:
    """Return the error for a provider with the address of the simulated server; "" for another address.

    It takes one query. Users may connect the simulated server only with the template of simulated models, so that its
    results are labelled.
    """
    server_urls = ServiceAddress.objects.filter(name=SERVER_NAME).values_list("url", flat=True)
    if not any(is_same_origin(address, url) for url in server_urls):
        return ""
    return (
        f"This is the address of the simulated models: choose the template {SIMULATED_TITLE}, so that results are "
        "labelled."
    )


def build_simulated_models(provider: Provider) -> dict[str, Model]:
    """Build the simulated models whose faults the provider's wire format can express, without saving them.

    Returns:
        The models by their name at the provider.
    """
    prefix = _PREFIX_BY_WIRE[provider.wire]
    return {
        f"{prefix}{persona.slug}": Model(
            provider=provider,
            name=f"{prefix}{persona.slug}",
            canonical=f"simulated/{persona.slug}",  # only for new rows: a user may have changed it
            true_rates=persona.true_rates,
            note=persona.sentence,
            workarounds=list(persona.workarounds),  # the true rates of the strategy production assume them
        )
        for persona in load_personas().values()
        if provider.wire in persona.wires
    }


@dataclass(frozen=True, slots=True)
class SimulatedModelRow:
    """A simulated model on the page that lists them.

    Attributes:
        scenario_rates: true rates by scenario slug and strategy, of the scenarios whose rates are neither those of the
            tool scenarios nor those of the controls.
    """

    model: Model
    scenario_rates: Mapping[str, Mapping[str, float]]


def get_simulated_models() -> tuple[SimulatedModelRow, ...]:
    """Return the simulated models of every provider with the wire format of chat completions, with one query.

    Retired models are omitted, and so are providers with another wire format, which have only some of the same models.
    """
    chat_only = {"provider__kind": Provider.Kind.SIMULATED, "provider__wire": Provider.Wire.CHAT}
    models = Model.objects.filter(**chat_only, retired=False).select_related("provider")
    slugs = {scenario.slug for scenario in list_scenarios()}
    return tuple(SimulatedModelRow(model, _find_scenario_rates(model.true_rates, slugs)) for model in models)


def _find_scenario_rates(true_rates: Mapping[str, Any], slugs: Collection[str]) -> Mapping[str, Mapping[str, float]]:
    group_rates = [true_rates.get(group) for group in ("tools", "control")]
    return {slug: rates for slug, rates in true_rates.items() if slug in slugs and rates not in group_rates}
