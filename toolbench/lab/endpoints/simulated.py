"""Simulated providers, the one that comes along and others of another name: the same personas, always labelled."""

from toolbench.lab.endpoints.urls import is_same_origin
from toolbench.lab.models import Model, Provider, ServiceAddress
from toolbench.providers.simulated.personas import load_personas
from toolbench.providers.simulated.server import SERVER_NAME
from toolbench.providers.simulated.wire_formats import CHAT, MESSAGES

SIMULATED_TEMPLATE = "simulated"  # of those that a person connected
SIMULATED_TITLE = "Simulated: the personas of this machine"
_PREFIX_BY_WIRE = {Provider.Wire.CHAT.value: CHAT.name_prefix, Provider.Wire.ANTHROPIC.value: MESSAGES.name_prefix}


def find_simulated_url_error(address: str) -> str:
    """Why this machine's simulated server cannot be connected as if it were a model's; "" for any other address. One
    query."""
    served = ServiceAddress.objects.filter(name=SERVER_NAME).values_list("url", flat=True)
    if not any(is_same_origin(address, url) for url in served):
        return ""
    return "That is this machine's simulated provider: choose the template Simulated, so that its figures say so."


def build_personas(provider: Provider) -> dict[str, Model]:
    """Every persona whose drift can be said on the provider's wire, by its name there. Nothing is written."""
    prefix = _PREFIX_BY_WIRE[provider.wire]
    return {
        f"{prefix}{persona.slug}": Model(
            provider=provider,
            name=f"{prefix}{persona.slug}",
            canonical=f"simulated/{persona.slug}",  # stays as a person may have set it
            true_rates=persona.true_rates,
            note=persona.sentence,
            workarounds=list(persona.workarounds),  # its published rates of strategy production hold with them
        )
        for persona in load_personas().values()
        if provider.wire in persona.wires
    }
