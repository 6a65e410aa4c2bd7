"""What the page of one model reads: what it can do and who says so, its probes, why its calls come as text."""

from dataclasses import dataclass
from datetime import datetime

from toolbench.engine.capabilities.proposing import Proposal, propose
from toolbench.engine.capabilities.record import DOCS, Effective, Told
from toolbench.evals.causes.text_calls import Cause, Clues, causes
from toolbench.lab.endpoints.capabilities import Measured, effective_of, get_effective, get_measured
from toolbench.lab.endpoints.refused_parameters import Offer, get_offers
from toolbench.lab.models import Model, Probe, Provider
from toolbench.providers.probing.probes import MOST_REQUESTS

SHOWN_PROBES = 10
SELF_HOSTED = ("vllm", "llama-cpp", "ollama", "lm-studio", "sglang")


@dataclass(frozen=True, slots=True)
class CapabilityLine:
    """`value` in words, "not known" where it is not; `overruled` are those who say otherwise, with their value."""

    name: str
    doc: str
    value: str
    source: str
    who: str
    at: datetime | None
    overruled: tuple[tuple[str, str], ...]

    @property
    def known(self) -> bool:
        return bool(self.source)


@dataclass(frozen=True, slots=True)
class ModelPage:
    model: Model
    lines: tuple[CapabilityLine, ...]
    probes: tuple[Probe, ...]
    proposal: Proposal
    causes: tuple[Cause, ...]
    refused: tuple[Offer, ...] = ()
    most_requests: int = MOST_REQUESTS  # of a probe

    @property
    def open_probe(self) -> Probe | None:
        return next((probe for probe in self.probes if probe.state != Probe.State.DONE), None)


def get_model_page(model_id: int) -> ModelPage:
    """Raises Model.DoesNotExist."""
    model = Model.objects.select_related("provider").get(pk=model_id)
    effective = effective_of(model)
    return ModelPage(
        model=model,
        lines=lines_of(effective),
        probes=tuple(model.probes.defer("checks", "learned")[:SHOWN_PROBES]),
        proposal=propose(effective.capabilities),
        causes=get_causes(model, effective),
        refused=get_offers(model),
    )


def lines_of(effective: Effective) -> tuple[CapabilityLine, ...]:
    """Every field, those that are known first."""
    lines = [_line(name, effective) for name in DOCS]
    return tuple(sorted(lines, key=lambda line: not line.known))


def get_causes(model: Model, effective: Effective, *, dialect: str = "") -> tuple[Cause, ...]:
    """Return why this model's calls come as text. At most five queries."""
    same = Model.objects.filter(canonical=model.canonical).exclude(pk=model.pk).exclude(canonical="")
    others = {other.pk: other for other in same.select_related("provider")}
    known = get_effective(others.values()) if others else {}

    def places(calls: bool) -> tuple[str, ...]:
        found = (pk for pk, one in known.items() if one.capabilities.supports_tool_use is calls)
        return tuple(dict.fromkeys(str(others[pk].provider) for pk in found))

    hosted = model.provider.kind == Provider.Kind.LOCAL or model.provider.template in SELF_HOSTED
    measured = get_measured([model]).get(model.pk, Measured())
    return causes(
        Clues(
            known=effective.capabilities,
            dialect=dialect,
            siblings=places(True),
            silent_siblings=places(False),
            self_hosted=hosted,
            silent_trials=measured.silent,
        )
    )


def in_words(value: object) -> str:
    """A capability's value as people read it."""
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _line(name: str, effective: Effective) -> CapabilityLine:
    told = effective.origins.get(name)
    return CapabilityLine(
        name=name,
        doc=DOCS[name],
        value=in_words(getattr(effective.capabilities, name)),
        source=told.source if told else "",
        who=told.who if told else "",
        at=told.at if told else None,
        overruled=tuple((_who(one), in_words(getattr(one.capabilities, name))) for one in _against(name, effective)),
    )


def _against(name: str, effective: Effective) -> tuple[Told, ...]:
    return effective.contradicted.get(name, ())


def _who(told: Told) -> str:
    return f"{told.source} by {told.who}" if told.who else told.source
