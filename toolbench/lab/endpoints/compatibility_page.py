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

CAPABILITY_COLUMNS = (  # (field of Capabilities, title)
    ("supports_tool_use", "Tool calls"),
    ("tools_field", "Tools field"),
    ("tool_choice_values", "tool_choice"),
    ("supports_parallel_tools", "Parallel"),
    ("supports_stream_tools", "Streamed"),
    ("supports_strict", "Strict"),
    ("constrained", "Constraint"),
    ("raw_completion", "Raw completion"),
    ("prompt_endpoint", "Prompt endpoint"),
    ("max_tools", "Maximum tools"),
    ("name_pattern", "Tool name pattern"),
    ("schema_dialect", "Refused schema keywords"),
    ("calls_shape", "Call shape"),
    ("arguments_shape", "Argument type"),
    ("ids", "Ids"),
    ("tool_id_pattern", "Id pattern"),
    ("limit_name", "Token limit name"),
    ("effort_name", "Effort name"),
    ("content_null_ok", "Content null"),
    ("allows_midturn_system", "Later system message"),
    ("reasoning_replay", "Reasoning replay"),
    ("text_format", "Text format"),
    ("json_stability", "JSON stability"),
    ("honours", "Options honoured"),
    ("ignores", "Options without effect"),
    ("usual_findings", "Usual findings"),
)


@dataclass(frozen=True, slots=True)
class CapabilityCell:
    """One capability of one model.

    Attributes:
        value: the value in words; "" if the capability is unknown.
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
        cells: the model's capabilities, in the order of the table's titles.
    """

    model: Model
    probe: Probe | None
    cells: tuple[CapabilityCell, ...]


@dataclass(frozen=True, slots=True)
class ProviderTable:
    """The models of one provider with their capabilities.

    Attributes:
        titles: the titles of the capabilities that are known for at least one model, those with the most known values
            first.
        unknown: the titles of the other capabilities.
        rows: the models that are not retired, ordered by name.
        declared: the capabilities declared by the provider's template; None if it declares none.
        max_requests: the maximum number of requests that probing all models sends.
    """

    provider: Provider
    titles: tuple[str, ...]
    unknown: tuple[str, ...]
    rows: tuple[CompatibilityRow, ...]
    declared: CapabilityRecord | None
    max_requests: int

    @property
    def simulated(self) -> bool:
        """Whether the provider serves simulated models."""
        return self.provider.kind == Provider.Kind.SIMULATED

    @property
    def unprobed_count(self) -> int:
        """The number of models that were never probed."""
        return sum(row.probe is None for row in self.rows)


def get_provider_tables() -> tuple[ProviderTable, ...]:
    """Return a table for every provider with a model that is not retired; simulated providers come last.

    It takes four queries, or up to eight for more than `MAX_UNCACHED_MODELS` models.
    """
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
    known_counts = Counter(name for model in models for name in effective[model.pk].origins)
    shown = sorted(
        (column for column in CAPABILITY_COLUMNS if known_counts[column[0]]),
        key=lambda column: -known_counts[column[0]],
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
        unknown=tuple(title for name, title in CAPABILITY_COLUMNS if not known_counts[name]),
        rows=rows,
        declared=find_declared_capabilities(get_template_slug(provider)),
        max_requests=len(models) * MAX_REQUESTS,
    )


def _build_cell(name: str, effective: EffectiveCapabilities) -> CapabilityCell:
    origin = effective.origins.get(name)
    if origin is None:
        return CapabilityCell("", "", "", None)
    return CapabilityCell(render_value(getattr(effective.capabilities, name)), origin.source, origin.who, origin.at)
