"""Rows of the table of text formats: what Toolbench supports for each, and the models that use it."""

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
    """One text format in the table.

    Attributes:
        is_native: whether model servers know the format and models were trained on it.
        has_template: whether Toolbench can render turns in it, for the method template.
        has_grammar: whether a grammar can enforce it, for the method constrained.
        example: an example call in the format.
        models: models whose capabilities, merged from all sources, name this format.
    """

    name: str
    is_native: bool
    has_template: bool
    has_grammar: bool
    example: str
    models: tuple[Model, ...]


def get_text_format_rows() -> tuple[TextFormatRow, ...]:
    """Return a row for each text format, in the order of FORMATS.

    It takes three queries, or up to seven if there are more than `capabilities.MAX_UNCACHED_MODELS` models.
    """
    models = {model.pk: model for model in Model.objects.select_related("provider")}
    models_by_format: dict[str, list[Model]] = {}
    for pk, effective in get_capabilities_by_model(models.values()).items():
        if effective.capabilities.text_format:
            models_by_format.setdefault(effective.capabilities.text_format, []).append(models[pk])
    return tuple(
        TextFormatRow(
            name=text_format.name,
            is_native=text_format.is_native,
            has_template=text_format.name in TURN_SPECS,
            has_grammar=_has_grammar(text_format.name),
            example=formats.render([EXAMPLE_CALL], format=text_format.name),
            models=tuple(models_by_format.get(text_format.name, ())),
        )
        for text_format in FORMATS
    )


def _has_grammar(format_name: str) -> bool:
    try:
        find_format_grammar(format_name)
    except PlanError:
        return False
    return True
