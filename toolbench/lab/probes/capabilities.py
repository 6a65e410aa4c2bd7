"""What is known of a model at its provider: declared, probed, measured, and what follows from all three."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max, Sum
from django.utils import timezone

from toolbench.engine.capabilities.declared import declared_by
from toolbench.engine.capabilities.record import (
    Capabilities,
    Effective,
    Told,
    UnreadableCapabilities,
    merge,
    read_capabilities,
    stability,
)
from toolbench.lab.models import Cell, Model, Probe, Provider

GOOD_FOR = timedelta(days=7)  # a probe's findings
TEXT_METHOD = "text_json"


@dataclass(frozen=True, slots=True)
class Measured:
    """Turns of stored trials that tried to call in text, and how many of them could not be read."""

    turns: int
    parse_errors: int
    until: datetime

    @property
    def level(self) -> str | None:
        return stability(self.parse_errors, self.turns)


def get_effective(models: Iterable[Model]) -> dict[int, Effective]:
    """By the model's id. Two queries; the models come with their provider."""
    wanted = list(models)
    probed, measured = _probed(wanted), get_measured(wanted)
    return {
        model.pk: merge((*_declared(model), *probed[model.pk], *_measured(measured.get(model.pk)))) for model in wanted
    }


def effective_of(model: Model) -> Effective:
    """Two queries."""
    return get_effective([model])[model.pk]


def template_of(provider: Provider) -> str:
    """Whose declarations hold for its models."""
    return "llama-cpp" if provider.kind == Provider.Kind.LOCAL else provider.template


def learned_by(probe: Probe) -> Capabilities:
    """What the probe found out; nothing where another version wrote it down in words that this one cannot read."""
    return _readable(probe.learned)


def _readable(stored: Mapping[str, Any]) -> Capabilities:
    try:
        return read_capabilities(stored)
    except UnreadableCapabilities:
        return Capabilities()


def _declared(model: Model) -> list[Told]:
    told = [one for one in (declared_by(template_of(model.provider)),) if one is not None]
    if model.constraint:
        own = Capabilities(constrained=(model.constraint,))
        told.append(Told("declared", own, "the model's row"))
    own = _readable(model.capabilities)
    return [*told, Told("declared", own, "a person")] if own.known() else told


def _probed(models: Iterable[Model]) -> Mapping[int, list[Told]]:
    """The latest probe of each kind that is not too old, oldest first."""
    since = timezone.now() - GOOD_FOR
    ids = [model.pk for model in models]
    rows = Probe.objects.filter(model__in=ids, state=Probe.State.DONE, ok=True, finished_at__gte=since)
    latest = {(probe.model_id, probe.kind): probe for probe in rows.order_by("finished_at").defer("checks")}
    told: dict[int, list[Told]] = defaultdict(list)
    for probe in sorted(latest.values(), key=lambda probe: probe.pk):
        told[probe.model_id].append(Told("probed", learned_by(probe), f"probe {probe.pk}", probe.finished_at, probe.pk))
    return told


def get_measured(models: Iterable[Model]) -> dict[int, Measured]:
    """From stored trials that asked for calls as text. One query; models without any are left out."""
    rows = (
        Cell.objects.filter(config__model__in=[model.pk for model in models], config__method=TEXT_METHOD)
        .filter(run__deleted_at=None, calling_turns__gt=0)
        .values("config__model")
        .annotate(turns=Sum("calling_turns"), errors=Sum("parse_error_turns"), until=Max("run__created_at"))
    )
    return {row["config__model"]: Measured(row["turns"], row["errors"], row["until"]) for row in rows}


def _measured(measured: Measured | None) -> list[Told]:
    if measured is None or measured.level is None:
        return []
    who = f"{measured.parse_errors} of {measured.turns} turns could not be read"
    return [Told("measured", Capabilities(json_stability=measured.level), who, measured.until)]
