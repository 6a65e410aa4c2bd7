"""The simulated personas, each with its published true rates."""

from toolbench.lab.models import Model, Provider


def get_personas() -> tuple[Model, ...]:
    """As they speak in chat completions: what they do in Anthropic's shape is the same. One query."""
    spoken = {"provider__kind": Provider.Kind.SIMULATED, "provider__wire": Provider.Wire.CHAT}
    personas = Model.objects.filter(**spoken, retired=False)
    return tuple(personas.select_related("provider"))
