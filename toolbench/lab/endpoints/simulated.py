"""Simulated providers: a built-in one for each wire format, and those that users connect.

All of them are labelled as simulated.
"""

from toolbench.lab.endpoints.urls import is_same_origin
from toolbench.lab.models import Model, Provider, ServiceAddress
from toolbench.providers.simulated.personas import load_personas
from toolbench.providers.simulated.server import SERVER_NAME
from toolbench.providers.simulated.wire_formats import CHAT, MESSAGES, RESPONSES

SIMULATED_TEMPLATE = "simulated"  # template of simulated providers that a user connected
SIMULATED_TITLE = "Simulated: the simulated models of this machine"
_PREFIX_BY_WIRE = {
    Provider.Wire.CHAT.value: CHAT.name_prefix,
    Provider.Wire.ANTHROPIC.value: MESSAGES.name_prefix,
    Provider.Wire.RESPONSES.value: RESPONSES.name_prefix,
}


def find_simulated_url_error(address: str) -> str:
    """Return the error for an address of the simulated server; "" for another address. It takes one query.

    The simulated server can only be connected with the template Simulated, so that its results are labelled.
    """
    server_urls = ServiceAddress.objects.filter(name=SERVER_NAME).values_list("url", flat=True)
    if not any(is_same_origin(address, url) for url in server_urls):
        return ""
    return "This is the address of the simulated models: choose the template Simulated, so that results are labelled."


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
            canonical=f"simulated/{persona.slug}",  # an update keeps the name that a user has set
            true_rates=persona.true_rates,
            note=persona.sentence,
            workarounds=list(persona.workarounds),  # the published rates of production need them
        )
        for persona in load_personas().values()
        if provider.wire in persona.wires
    }


def get_simulated_models() -> tuple[Model, ...]:
    """Return the simulated models of every provider with the wire format of chat completions, with one query.

    Providers with another wire format have some of the same models; their rows and retired models are omitted.
    """
    chat_only = {"provider__kind": Provider.Kind.SIMULATED, "provider__wire": Provider.Wire.CHAT}
    return tuple(Model.objects.filter(**chat_only, retired=False).select_related("provider"))
