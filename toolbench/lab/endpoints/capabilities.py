"""What is known of a model at its provider: declared, probed, measured, and what follows from all three."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Max, Q, Sum
from django.db.models.functions import Coalesce
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
ENOUGH_SILENCE = 20  # trials that needed a call, before a lack of structured calls says anything
_TEXT = Q(config__method="text_json")
_NATIVE = Q(config__method="native")
_STRUCTURED = _NATIVE & Q(structured_answers__gt=0)
_SEVERAL = _STRUCTURED & Q(calling_answers=F("structured_answers"), calls__gt=F("calling_answers"))
_ENDED = Coalesce("run__finished_at", "run__created_at")


@dataclass(frozen=True, slots=True)
class Measured:
    """Counts of one model's stored trials, by the method that asked for the calls.

    Attributes:
        text_turns: answers of the method text_json that tried to call.
        parse_errors: those of them that could not be read.
        due_trials: trials of the method native that needed a call and got an answer.
        structured: answers of the method native with calls in their own field; `streamed` of these came in a stream.
        several: whether any of them held more than one call, of cells in which no call came as text.
        text_until, structured_until: when the newest run with calls of that kind ended, or was launched while it still
            goes on; None without any.
    """

    text_turns: int = 0
    parse_errors: int = 0
    due_trials: int = 0
    structured: int = 0
    streamed: int = 0
    several: bool = False
    text_until: datetime | None = None
    structured_until: datetime | None = None

    @property
    def level(self) -> str | None:
        return stability(self.parse_errors, self.text_turns)

    @property
    def silent(self) -> int:
        """Return how many trials needed a call, where none had a structured one and there are enough; else 0."""
        return self.due_trials if not self.structured and self.due_trials >= ENOUGH_SILENCE else 0


def get_effective(models: Iterable[Model]) -> dict[int, Effective]:
    """By the model's id. Two queries; the models come with their provider."""
    wanted = list(models)
    probed, measured = _probed(wanted), get_measured(wanted)
    return {
        model.pk: merge(
            (*_declared(model), *probed[model.pk], *_measured(measured.get(model.pk, Measured()), probed[model.pk]))
        )
        for model in wanted
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
    """Count the stored trials of these models. One query; models without any are left out."""
    rows = (
        Cell.objects.filter(config__model__in=[model.pk for model in models], run__deleted_at=None)
        .filter(_TEXT & Q(calling_turns__gt=0) | _NATIVE)
        .values("config__model")
        .annotate(
            text_turns=Sum("calling_turns", filter=_TEXT, default=0),
            parse_errors=Sum("parse_error_turns", filter=_TEXT, default=0),
            due_trials=Sum(F("called_rightly") + F("call_missed"), filter=_NATIVE, default=0),
            structured=Sum("structured_answers", filter=_NATIVE, default=0),
            streamed=Sum("structured_answers", filter=_NATIVE & Q(config__stream=True), default=0),
            several=Sum("calls", filter=_SEVERAL, default=0),
            text_until=Max(_ENDED, filter=_TEXT),
            structured_until=Max(_ENDED, filter=_STRUCTURED),
        )
    )
    return {row["config__model"]: _counted(row) for row in rows}


def _counted(row: Mapping[str, Any]) -> Measured:
    counts = {name: value for name, value in row.items() if name != "config__model"}
    return Measured(**counts | {"several": bool(row["several"])})


def _measured(measured: Measured, probed: Sequence[Told]) -> list[Told]:
    """What the trials show. A later probe whose requests with tools were refused outweighs calls seen before it."""
    told: list[Told] = []
    if measured.level is not None:
        who = f"{measured.parse_errors} of {measured.text_turns} turns could not be read"
        told.append(Told("measured", Capabilities(json_stability=measured.level), who, measured.text_until))
    if measured.structured and not _refused_since(measured.structured_until, probed):
        who = f"{measured.structured} answers with structured calls in trials"
        seen = Capabilities(
            supports_tool_use=True,
            tools_field="accepted",
            supports_parallel_tools=measured.several or None,
            supports_stream_tools=bool(measured.streamed) or None,
        )
        told.append(Told("measured", seen, who, measured.structured_until))
    return told


def _refused_since(until: datetime | None, probed: Sequence[Told]) -> bool:
    refusals = (one.at for one in probed if one.capabilities.tools_field == "refused")
    return any(until is None or (at is not None and at > until) for at in refusals)
