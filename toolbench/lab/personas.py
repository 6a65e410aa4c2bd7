"""The simulated personas, each with its published true rates."""

from toolbench.lab.models import Model, Provider


def get_personas() -> tuple[Model, ...]:
    """One query."""
    personas = Model.objects.filter(provider__kind=Provider.Kind.SIMULATED, retired=False)
    return tuple(personas.select_related("provider"))
