"""Simulated providers, the one that comes along and others of another name: the same personas, always labelled."""

from toolbench.lab.endpoints.urls import same_place
from toolbench.lab.models import Model, Provider, ServiceAddress
from toolbench.providers.simulated.personas import all_personas
from toolbench.providers.simulated.server import NAME
from toolbench.providers.simulated.wire_formats import CHAT, MESSAGES

TEMPLATE = "simulated"  # of those that a person connected
TITLE = "Simulated: the personas of this machine"
_PREFIXES = {Provider.Wire.CHAT.value: CHAT.prefix, Provider.Wire.ANTHROPIC.value: MESSAGES.prefix}


def in_disguise(address: str) -> str:
    """Why this machine's simulated server cannot be connected as if it were a model's; "" for any other address. One
    query."""
    served = ServiceAddress.objects.filter(name=NAME).values_list("url", flat=True)
    if not any(same_place(address, url) for url in served):
        return ""
    return "That is this machine's simulated provider: choose the template Simulated, so that its figures say so."


def personas_of(provider: Provider) -> dict[str, Model]:
    """Every persona whose drift can be said on the provider's wire, by its name there. Nothing is written."""
    prefix = _PREFIXES[provider.wire]
    return {
        f"{prefix}{persona.slug}": Model(
            provider=provider,
            name=f"{prefix}{persona.slug}",
            canonical=f"simulated/{persona.slug}",  # stays as a person may have set it
            true_rates=persona.true_rates,
            note=persona.sentence,
            workarounds=list(persona.workarounds),  # its published rates of strategy production hold with them
        )
        for persona in all_personas().values()
        if provider.wire in persona.wires
    }
