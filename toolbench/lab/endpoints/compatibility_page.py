"""Data of the compatibility page: the models of each provider by capability."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from toolbench.engine.capabilities.declared import find_declared_capabilities
from toolbench.engine.capabilities.record import CapabilityRecord, EffectiveCapabilities
from toolbench.lab.endpoints.capabilities import get_capabilities_by_model, get_template_slug
from toolbench.lab.endpoints.model_page import render_value
from toolbench.lab.models import Model, Probe, Provider
from toolbench.providers.probing.probes import MAX_REQUESTS

CAPABILITY_COLUMNS = (
    ("supports_tool_use", "Tool calls"),
    ("tools_field", "Tools sent are"),
    ("tool_choice_values", "tool_choice"),
    ("supports_parallel_tools", "Parallel"),
    ("supports_stream_tools", "Streamed"),
    ("supports_strict", "Strict"),
    ("constrained", "Constrained by"),
    ("raw_completion", "Raw completion"),
    ("prompt_endpoint", "Prompts go to"),
    ("max_tools", "Most tools"),
    ("name_pattern", "Tools' names must be"),
    ("schema_dialect", "Refused in schemas"),
    ("calls_shape", "Shape"),
    ("arguments_shape", "Arguments are"),
    ("ids", "Ids"),
    ("tool_id_pattern", "Ids must be"),
    ("limit_name", "Limit is called"),
    ("effort_name", "Effort is called"),
    ("content_null_ok", "Content null"),
    ("allows_midturn_system", "Later system"),
    ("reasoning_replay", "Reasoning back"),
    ("text_format", "Dialect in text"),
    ("json_stability", "JSON stability"),
    ("honours", "Options honoured"),
    ("ignores", "Options without effect"),
    ("usual_findings", "Usual findings"),
)


@dataclass(frozen=True, slots=True)
class CapabilityCell:
    """One capability of one model.

    Attributes:
        value: the value in words.
        source: declared, probed or measured; "" if the capability is unknown.
        who: the declaration, probe or trials that the value comes from, in words.
        at: when the value was declared or seen; None if that is unknown.
    """

    value: str
    source: str
    who: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class CompatibilityRow:
    """One model of a provider's table.

    Attributes:
        probe: the latest probe of the model; None if it was never probed.
        cells: its capabilities, in the order of the table's titles.
    """

    model: Model
    probe: Probe | None
    cells: tuple[CapabilityCell, ...]


@dataclass(frozen=True, slots=True)
class ProviderTable:
    """The models of one provider with their capabilities.

    Attributes:
        titles: the columns that are known of at least one model, those with the most known values first.
        unknown: the titles of the other columns.
        declared: the declared capabilities that all models of the provider share; None without any.
        most_requests: the most requests that probing all models may send.
    """

    provider: Provider
    titles: tuple[str, ...]
    unknown: tuple[str, ...]
    rows: tuple[CompatibilityRow, ...]
    declared: CapabilityRecord | None
    most_requests: int

    @property
    def simulated(self) -> bool:
        """Whether the provider serves simulated models."""
        return self.provider.kind == Provider.Kind.SIMULATED

    @property
    def not_probed(self) -> int:
        """The number of models that were never probed."""
        return sum(row.probe is None for row in self.rows)


def get_provider_tables() -> tuple[ProviderTable, ...]:
    """Return a table for every provider that has models, simulated ones last. Four queries."""
    models = list(Model.objects.filter(retired=False).select_related("provider").order_by("provider__name", "name"))
    effective, probes = get_capabilities_by_model(models), _get_latest_probes()
    grouped = groupby(models, key=lambda model: model.provider)
    tables = [_build_table(provider, list(provider_models), effective, probes) for provider, provider_models in grouped]
    return tuple(sorted(tables, key=lambda table: table.simulated))


def _get_latest_probes() -> dict[int, Probe]:
    latest = Probe.objects.order_by("model_id", "-pk").distinct("model_id").defer("checks", "learned")
    return {probe.model_id: probe for probe in latest}


def _build_table(
    provider: Provider, models: list[Model], effective: Mapping[int, EffectiveCapabilities], probes: Mapping[int, Probe]
) -> ProviderTable:
    filled = Counter(name for model in models for name in effective[model.pk].origins)
    shown = sorted(
        (column for column in CAPABILITY_COLUMNS if filled[column[0]]), key=lambda column: -filled[column[0]]
    )
    rows = tuple(
        CompatibilityRow(
            model, probes.get(model.pk), tuple(_build_cell(name, effective[model.pk]) for name, _ in shown)
        )
        for model in models
    )
    return ProviderTable(
        provider=provider,
        titles=tuple(title for _, title in shown),
        unknown=tuple(title for name, title in CAPABILITY_COLUMNS if not filled[name]),
        rows=rows,
        declared=find_declared_capabilities(get_template_slug(provider)),
        most_requests=len(models) * MAX_REQUESTS,
    )


def _build_cell(name: str, effective: EffectiveCapabilities) -> CapabilityCell:
    origin = effective.origins.get(name)
    if origin is None:
        return CapabilityCell("", "", "", None)
    return CapabilityCell(render_value(getattr(effective.capabilities, name)), origin.source, origin.who, origin.at)
