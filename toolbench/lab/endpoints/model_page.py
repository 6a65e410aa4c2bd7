"""Data of a model's page: capabilities, their sources, probes, and possible causes of calls in text."""

from dataclasses import dataclass
from datetime import datetime

from toolbench.engine.capabilities.preset_proposal import PresetProposal, propose_preset
from toolbench.engine.capabilities.record import DOCS, CapabilityRecord, EffectiveCapabilities
from toolbench.evals.causes.text_calls import TextCallCause, TextCallEvidence, assess_text_call_causes
from toolbench.lab.endpoints.capabilities import (
    MeasuredCalls,
    get_measured_calls,
    get_model_capabilities,
    merge_capabilities,
)
from toolbench.lab.endpoints.refused_parameters import SuggestedOmission, get_suggested_omissions
from toolbench.lab.models import Model, Probe, Provider
from toolbench.providers.probing.probes import MAX_REQUESTS

MAX_PROBES_SHOWN = 10
# Slugs of the templates of servers that users run themselves.
SELF_HOSTED_TEMPLATES = ("vllm", "llama-cpp", "ollama", "lm-studio", "sglang")


@dataclass(frozen=True, slots=True)
class CapabilityRow:
    """One capability of the model.

    Attributes:
        doc: what the capability means.
        value: the value in words; "not known" if it is unknown.
        source: declared, probed or measured; "" if the capability is unknown.
        who: the declaration, probe or trials that the value comes from, in words; "" if the capability is unknown.
        at: when the value was declared or seen; None if that is unknown.
        overruled_values: (source, value) in words of each capability record whose different value was overruled.
    """

    name: str
    doc: str
    value: str
    source: str
    who: str
    at: datetime | None
    overruled_values: tuple[tuple[str, str], ...]

    @property
    def is_known(self) -> bool:
        """Whether the capability is known."""
        return bool(self.source)


@dataclass(frozen=True, slots=True)
class ModelPage:
    """Data of the page of one model.

    Attributes:
        capabilities: one row for each capability, known ones first.
        probes: the last `MAX_PROBES_SHOWN` probes, newest first.
        proposal: the preset that the capabilities suggest.
        causes: possible causes of calls that the model writes into its text.
        refused: parameters that the endpoint refused in runs and that the model's workarounds do not omit yet.
        max_requests: the maximum number of requests of one execution of a conformance probe, with retries.
    """

    model: Model
    capabilities: tuple[CapabilityRow, ...]
    probes: tuple[Probe, ...]
    proposal: PresetProposal
    causes: tuple[TextCallCause, ...]
    refused: tuple[SuggestedOmission, ...] = ()
    max_requests: int = MAX_REQUESTS

    @property
    def open_probe(self) -> Probe | None:
        """The newest of `probes` that is queued or running; None if all are done."""
        return next((probe for probe in self.probes if probe.state != Probe.State.DONE), None)


def get_model_page(model_id: int) -> ModelPage:
    """Return the data of a model's page.

    Raises:
        Model.DoesNotExist: there is no such model.
    """
    model = Model.objects.select_related("provider").get(pk=model_id)
    effective = get_model_capabilities(model)
    return ModelPage(
        model=model,
        capabilities=build_capability_rows(effective),
        probes=tuple(model.probes.defer("checks", "learned")[:MAX_PROBES_SHOWN]),
        proposal=propose_preset(effective.capabilities),
        causes=get_text_call_causes(model),
        refused=get_suggested_omissions(model),
    )


def build_capability_rows(effective: EffectiveCapabilities) -> tuple[CapabilityRow, ...]:
    """Return a row for every capability, known ones first."""
    rows = [_build_row(name, effective) for name in DOCS]
    return tuple(sorted(rows, key=lambda row: not row.is_known))


def get_text_call_causes(model: Model, *, text_format: str = "") -> tuple[TextCallCause, ...]:
    """Return the possible causes of calls in the text of this model's answers.

    The model is compared with the other models of its canonical name. It takes three queries, or up to seven if more
    than `capabilities.MAX_UNCACHED_MODELS` models have this name.

    Args:
        model: a model with its provider loaded.
        text_format: the text format of a call in the text of a trial; "" if no such call is known.
    """
    same_weights = Model.objects.filter(canonical=model.canonical).exclude(pk=model.pk).exclude(canonical="")
    siblings = {sibling.pk: sibling for sibling in same_weights.select_related("provider")}
    models = [model, *siblings.values()]
    measured = get_measured_calls(models)
    effective = merge_capabilities(models, measured)

    def list_providers(*, supports_tool_use: bool) -> tuple[str, ...]:
        ids = (pk for pk in siblings if effective[pk].capabilities.supports_tool_use is supports_tool_use)
        return tuple(dict.fromkeys(str(siblings[pk].provider) for pk in ids))

    is_self_hosted = model.provider.kind == Provider.Kind.LOCAL or model.provider.template in SELF_HOSTED_TEMPLATES
    return assess_text_call_causes(
        TextCallEvidence(
            capabilities=effective[model.pk].capabilities,
            text_format=text_format,
            native_providers=list_providers(supports_tool_use=True),
            silent_providers=list_providers(supports_tool_use=False),
            self_hosted=is_self_hosted,
            silent_trials=measured.get(model.pk, MeasuredCalls()).trials_without_calls,
        )
    )


def render_value(value: object) -> str:
    """Return the value of a capability in words; "not known" for None."""
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _build_row(name: str, effective: EffectiveCapabilities) -> CapabilityRow:
    origin = effective.origins.get(name)
    return CapabilityRow(
        name=name,
        doc=DOCS[name],
        value=render_value(getattr(effective.capabilities, name)),
        source=origin.source if origin else "",
        who=origin.who if origin else "",
        at=origin.at if origin else None,
        overruled_values=tuple(
            (_describe_source(record), render_value(getattr(record.capabilities, name)))
            for record in effective.overruled_records.get(name, ())
        ),
    )


def _describe_source(record: CapabilityRecord) -> str:
    return f"{record.source} by {record.who}" if record.who else record.source
