"""The text formats, the methods that each supports, and the models that write it."""

from dataclasses import dataclass

from toolbench.engine import formats
from toolbench.engine.constraints.format_grammar import find_format_grammar
from toolbench.engine.errors import PlanError
from toolbench.engine.formats.chat.turn_templates import TURN_SPECS
from toolbench.engine.formats.registry import FORMATS
from toolbench.lab.endpoints.capabilities import get_capabilities_by_model
from toolbench.lab.endpoints.format_viewer import EXAMPLE_CALL
from toolbench.lab.models import Model


@dataclass(frozen=True, slots=True)
class TextFormatRow:
    """One text format.

    Attributes:
        native: whether servers know the format.
        template: whether Toolbench can render its turns.
        grammar: whether Toolbench has a grammar that constrains a model to the format.
        sample: the example call in the format.
        models: the models that are known to use it.
    """

    name: str
    native: bool
    template: bool
    grammar: bool
    sample: str
    models: tuple[Model, ...]


def get_text_format_rows() -> tuple[TextFormatRow, ...]:
    """Return a row for every text format. Three queries."""
    models = {model.pk: model for model in Model.objects.select_related("provider")}
    users: dict[str, list[Model]] = {}
    for pk, capabilities in get_capabilities_by_model(models.values()).items():
        if capabilities.capabilities.text_format:
            users.setdefault(capabilities.capabilities.text_format, []).append(models[pk])
    return tuple(
        TextFormatRow(
            name=form.name,
            native=form.native,
            template=form.name in TURN_SPECS,
            grammar=_has_grammar(form.name),
            sample=formats.render([EXAMPLE_CALL], format=form.name),
            models=tuple(users.get(form.name, ())),
        )
        for form in FORMATS
    )


def _has_grammar(format: str) -> bool:
    try:
        find_format_grammar(format)
    except PlanError:
        return False
    return True
