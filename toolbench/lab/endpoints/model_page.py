"""What the page of one model reads: what it can do and who says so, its probes, why its calls come as text."""

from dataclasses import dataclass
from datetime import datetime

from toolbench.engine.capabilities.preset_proposal import PresetProposal, propose_preset
from toolbench.engine.capabilities.record import DOCS, CapabilityRecord, EffectiveCapabilities
from toolbench.evals.causes.text_calls import TextCallCause, TextCallEvidence, assess_text_call_causes
from toolbench.lab.endpoints.capabilities import (
    MeasuredCalls,
    get_capabilities_by_model,
    get_measured_calls,
    get_model_capabilities,
)
from toolbench.lab.endpoints.refused_parameters import SuggestedOmission, get_suggested_omissions
from toolbench.lab.models import Model, Probe, Provider
from toolbench.providers.probing.probes import MAX_REQUESTS

MAX_PROBES_SHOWN = 10
SELF_HOSTED_TEMPLATES = ("vllm", "llama-cpp", "ollama", "lm-studio", "sglang")


@dataclass(frozen=True, slots=True)
class CapabilityRow:
    """`value` in words, "not known" where it is not; `overruled_values` are those who say otherwise, with their
    value."""

    name: str
    doc: str
    value: str
    source: str
    who: str
    at: datetime | None
    overruled_values: tuple[tuple[str, str], ...]

    @property
    def known(self) -> bool:
        return bool(self.source)


@dataclass(frozen=True, slots=True)
class ModelPage:
    model: Model
    lines: tuple[CapabilityRow, ...]
    probes: tuple[Probe, ...]
    proposal: PresetProposal
    causes: tuple[TextCallCause, ...]
    refused: tuple[SuggestedOmission, ...] = ()
    most_requests: int = MAX_REQUESTS  # of a probe

    @property
    def open_probe(self) -> Probe | None:
        return next((probe for probe in self.probes if probe.state != Probe.State.DONE), None)


def get_model_page(model_id: int) -> ModelPage:
    """Raises Model.DoesNotExist."""
    model = Model.objects.select_related("provider").get(pk=model_id)
    effective = get_model_capabilities(model)
    return ModelPage(
        model=model,
        lines=build_capability_rows(effective),
        probes=tuple(model.probes.defer("checks", "learned")[:MAX_PROBES_SHOWN]),
        proposal=propose_preset(effective.capabilities),
        causes=list_text_call_causes(model, effective),
        refused=get_suggested_omissions(model),
    )


def build_capability_rows(effective: EffectiveCapabilities) -> tuple[CapabilityRow, ...]:
    """Every field, those that are known first."""
    lines = [_build_row(name, effective) for name in DOCS]
    return tuple(sorted(lines, key=lambda line: not line.known))


def list_text_call_causes(
    model: Model, effective: EffectiveCapabilities, *, dialect: str = ""
) -> tuple[TextCallCause, ...]:
    """Return why this model's calls come as text. At most five queries."""
    same = Model.objects.filter(canonical=model.canonical).exclude(pk=model.pk).exclude(canonical="")
    others = {other.pk: other for other in same.select_related("provider")}
    known = get_capabilities_by_model(others.values()) if others else {}

    def places(calls: bool) -> tuple[str, ...]:
        found = (pk for pk, one in known.items() if one.capabilities.supports_tool_use is calls)
        return tuple(dict.fromkeys(str(others[pk].provider) for pk in found))

    hosted = model.provider.kind == Provider.Kind.LOCAL or model.provider.template in SELF_HOSTED_TEMPLATES
    measured = get_measured_calls([model]).get(model.pk, MeasuredCalls())
    return assess_text_call_causes(
        TextCallEvidence(
            known=effective.capabilities,
            dialect=dialect,
            siblings=places(True),
            silent_siblings=places(False),
            self_hosted=hosted,
            silent_trials=measured.trials_without_calls,
        )
    )


def render_value(value: object) -> str:
    """A capability's value as people read it."""
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _build_row(name: str, effective: EffectiveCapabilities) -> CapabilityRow:
    told = effective.origins.get(name)
    return CapabilityRow(
        name=name,
        doc=DOCS[name],
        value=render_value(getattr(effective.capabilities, name)),
        source=told.source if told else "",
        who=told.who if told else "",
        at=told.at if told else None,
        overruled_values=tuple(
            (_describe_source(one), render_value(getattr(one.capabilities, name)))
            for one in _list_overruled(name, effective)
        ),
    )


def _list_overruled(name: str, effective: EffectiveCapabilities) -> tuple[CapabilityRecord, ...]:
    return effective.contradicted.get(name, ())


def _describe_source(told: CapabilityRecord) -> str:
    return f"{told.source} by {told.who}" if told.who else told.source
