"""Simulated providers: the built-in one, and others with the same simulated models.

All of them are labelled as simulated.
"""

from toolbench.lab.endpoints.urls import is_same_origin
from toolbench.lab.models import Model, Provider, ServiceAddress
from toolbench.providers.simulated.personas import load_personas
from toolbench.providers.simulated.server import SERVER_NAME
from toolbench.providers.simulated.wire_formats import CHAT, MESSAGES, RESPONSES

SIMULATED_TEMPLATE = "simulated"  # of providers that a person connected
SIMULATED_TITLE = "Simulated: the personas of this machine"
_PREFIX_BY_WIRE = {
    Provider.Wire.CHAT.value: CHAT.name_prefix,
    Provider.Wire.ANTHROPIC.value: MESSAGES.name_prefix,
    Provider.Wire.RESPONSES.value: RESPONSES.name_prefix,
}


def find_simulated_url_error(address: str) -> str:
    """Return why an address cannot be connected, if it is that of the simulated server; else "".

    It must be connected with the template Simulated, so that its results are labelled. One query.
    """
    served = ServiceAddress.objects.filter(name=SERVER_NAME).values_list("url", flat=True)
    if not any(is_same_origin(address, url) for url in served):
        return ""
    return "That is this machine's simulated provider: choose the template Simulated, so that its figures say so."


def build_personas(provider: Provider) -> dict[str, Model]:
    """Build the simulated models whose faults the provider's wire format can express, without saving them.

    Returns:
        The models by their name at the provider.
    """
    prefix = _PREFIX_BY_WIRE[provider.wire]
    return {
        f"{prefix}{persona.slug}": Model(
            provider=provider,
            name=f"{prefix}{persona.slug}",
            canonical=f"simulated/{persona.slug}",  # an update keeps the name that a person has set
            true_rates=persona.true_rates,
            note=persona.sentence,
            workarounds=list(persona.workarounds),  # the published rates of production need them
        )
        for persona in load_personas().values()
        if provider.wire in persona.wires
    }


def get_personas() -> tuple[Model, ...]:
    """Return the simulated models in the wire format of chat completions, with one query.

    In the other wire formats they behave in the same way, so those rows are left out.
    """
    chat_only = {"provider__kind": Provider.Kind.SIMULATED, "provider__wire": Provider.Wire.CHAT}
    personas = Model.objects.filter(**chat_only, retired=False)
    return tuple(personas.select_related("provider"))
