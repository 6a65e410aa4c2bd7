"""The two tables of what works where: by model and check, and by family of dialects."""

from dataclasses import dataclass
from datetime import datetime

from toolbench.engine import formats
from toolbench.engine.capabilities import Effective
from toolbench.engine.formats.registry import FORMATS
from toolbench.engine.formats.turns import TURNS
from toolbench.engine.formats.values import TextCall
from toolbench.lab.capabilities import get_effective
from toolbench.lab.model_page import in_words
from toolbench.lab.models import Model, Provider

COLUMNS = (
    ("supports_tool_use", "Tool calls"),
    ("tools_field", "Tools sent are"),
    ("tool_choice_values", "tool_choice"),
    ("supports_parallel_tools", "Parallel"),
    ("supports_stream_tools", "Streamed"),
    ("supports_strict", "Strict"),
    ("constrained", "Constrained by"),
    ("raw_completion", "Raw completion"),
    ("calls_shape", "Shape"),
    ("ids", "Ids"),
    ("tool_id_pattern", "Ids must be"),
    ("content_null_ok", "Content null"),
    ("allows_midturn_system", "Later system"),
    ("reasoning_replay", "Reasoning back"),
    ("text_format", "Dialect in text"),
    ("json_stability", "JSON stability"),
)
_SAMPLE = TextCall("get_weather", {"city": "Oslo"}, id="call_1")


@dataclass(frozen=True, slots=True)
class Known:
    """`source` is "" where nothing is known."""

    value: str
    source: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class CompatibilityRow:
    model: Model
    simulated: bool
    cells: tuple[Known, ...]


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """One dialect: whether servers know it, whether we write its turns, how it writes a call, and the models that were
    seen to use it."""

    name: str
    native: bool
    template: bool
    sample: str
    models: tuple[Model, ...]


def get_compatibility() -> tuple[CompatibilityRow, ...]:
    """Models of which anything is known, real ones first. Three queries."""
    models = list(Model.objects.filter(retired=False).select_related("provider"))
    effective = get_effective(models)
    rows = [_row(model, effective[model.pk]) for model in models if effective[model.pk].origins]
    return tuple(sorted(rows, key=lambda row: row.simulated))


def get_families() -> tuple[FamilyRow, ...]:
    """Every dialect. Three queries."""
    models = {model.pk: model for model in Model.objects.select_related("provider")}
    users: dict[str, list[Model]] = {}
    for pk, one in get_effective(models.values()).items():
        if one.capabilities.text_format:
            users.setdefault(one.capabilities.text_format, []).append(models[pk])
    return tuple(
        FamilyRow(
            name=form.name,
            native=form.native,
            template=form.name in TURNS,
            sample=formats.render([_SAMPLE], format=form.name),
            models=tuple(users.get(form.name, ())),
        )
        for form in FORMATS
    )


def _row(model: Model, effective: Effective) -> CompatibilityRow:
    simulated = model.provider.kind == Provider.Kind.SIMULATED
    return CompatibilityRow(model, simulated, tuple(_known(name, effective) for name, _ in COLUMNS))


def _known(name: str, effective: Effective) -> Known:
    told = effective.origins.get(name)
    value = in_words(getattr(effective.capabilities, name)) if told else ""
    return Known(value, told.source if told else "", told.at if told else None)
