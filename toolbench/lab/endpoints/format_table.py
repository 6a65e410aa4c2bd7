"""Data of the table of text formats: what Toolbench supports for each, and the models that use it."""

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
        native: whether model servers parse the format.
        template: whether Toolbench can render turns in it, for method template.
        grammar: whether Toolbench has a grammar for it, for method constrained.
        sample: an example call in the format.
        models: the models that are known to use the format.
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
            name=text_format.name,
            native=text_format.native,
            template=text_format.name in TURN_SPECS,
            grammar=_has_grammar(text_format.name),
            sample=formats.render([EXAMPLE_CALL], format=text_format.name),
            models=tuple(users.get(text_format.name, ())),
        )
        for text_format in FORMATS
    )


def _has_grammar(format_name: str) -> bool:
    try:
        find_format_grammar(format_name)
    except PlanError:
        return False
    return True
