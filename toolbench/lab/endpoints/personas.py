"""The simulated models with their published true rates."""

from toolbench.lab.models import Model, Provider


def get_personas() -> tuple[Model, ...]:
    """Return the simulated models in the wire format of chat completions, with one query.

    In Anthropic's wire format they behave in the same way, so those rows are left out.
    """
    spoken = {"provider__kind": Provider.Kind.SIMULATED, "provider__wire": Provider.Wire.CHAT}
    personas = Model.objects.filter(**spoken, retired=False)
    return tuple(personas.select_related("provider"))
