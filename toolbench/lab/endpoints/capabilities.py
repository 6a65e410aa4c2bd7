"""What is known of a model at its provider: declared, probed, measured, and what follows from all three."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Max, Q, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from toolbench.engine.capabilities.declared import find_declared_capabilities
from toolbench.engine.capabilities.record import (
    Capabilities,
    CapabilitiesError,
    CapabilityRecord,
    EffectiveCapabilities,
    merge_records,
    parse_capabilities,
    rate_json_stability,
)
from toolbench.lab.models import Cell, Model, Probe, Provider

PROBE_MAX_AGE = timedelta(days=7)  # a probe's findings
MIN_TRIALS_WITHOUT_CALLS = 20  # trials that needed a call, before a lack of structured calls says anything
_TEXT_METHOD = Q(config__method="text_json")
_NATIVE_METHOD = Q(config__method="native")
_HAS_STRUCTURED_CALLS = _NATIVE_METHOD & Q(structured_answers__gt=0)
_HAS_PARALLEL_CALLS = _HAS_STRUCTURED_CALLS & Q(calling_answers=F("structured_answers"), calls__gt=F("calling_answers"))
_RUN_ENDED_AT = Coalesce("run__finished_at", "run__created_at")


@dataclass(frozen=True, slots=True)
class MeasuredCalls:
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
    def json_stability(self) -> str | None:
        return rate_json_stability(self.parse_errors, self.text_turns)

    @property
    def trials_without_calls(self) -> int:
        """Return how many trials needed a call, where none had a structured one and there are enough; else 0."""
        return self.due_trials if not self.structured and self.due_trials >= MIN_TRIALS_WITHOUT_CALLS else 0


def get_capabilities_by_model(models: Iterable[Model]) -> dict[int, EffectiveCapabilities]:
    """By the model's id. Two queries; the models come with their provider."""
    wanted = list(models)
    probed, measured = _list_probed(wanted), get_measured_calls(wanted)
    return {
        model.pk: merge_records(
            (
                *_list_declared(model),
                *probed[model.pk],
                *_list_measured(measured.get(model.pk, MeasuredCalls()), probed[model.pk]),
            )
        )
        for model in wanted
    }


def get_model_capabilities(model: Model) -> EffectiveCapabilities:
    """Two queries."""
    return get_capabilities_by_model([model])[model.pk]


def get_template_slug(provider: Provider) -> str:
    """Whose declarations hold for its models."""
    return "llama-cpp" if provider.kind == Provider.Kind.LOCAL else provider.template


def read_probe_capabilities(probe: Probe) -> Capabilities:
    """What the probe found out; nothing where another version wrote it down in words that this one cannot read."""
    return _read_capabilities(probe.learned)


def _read_capabilities(stored: Mapping[str, Any]) -> Capabilities:
    try:
        return parse_capabilities(stored)
    except CapabilitiesError:
        return Capabilities()


def _list_declared(model: Model) -> list[CapabilityRecord]:
    told = [one for one in (find_declared_capabilities(get_template_slug(model.provider)),) if one is not None]
    if model.constraint:
        own = Capabilities(constrained=(model.constraint,))
        told.append(CapabilityRecord("declared", own, "the model's row"))
    own = _read_capabilities(model.capabilities)
    return [*told, CapabilityRecord("declared", own, "a person")] if own.known() else told


def _list_probed(models: Iterable[Model]) -> Mapping[int, list[CapabilityRecord]]:
    """The latest probe of each kind that is not too old, oldest first."""
    since = timezone.now() - PROBE_MAX_AGE
    ids = [model.pk for model in models]
    rows = Probe.objects.filter(model__in=ids, state=Probe.State.DONE, ok=True, finished_at__gte=since)
    latest = {(probe.model_id, probe.kind): probe for probe in rows.order_by("finished_at").defer("checks")}
    told: dict[int, list[CapabilityRecord]] = defaultdict(list)
    for probe in sorted(latest.values(), key=lambda probe: probe.pk):
        told[probe.model_id].append(
            CapabilityRecord("probed", read_probe_capabilities(probe), f"probe {probe.pk}", probe.finished_at, probe.pk)
        )
    return told


def get_measured_calls(models: Iterable[Model]) -> dict[int, MeasuredCalls]:
    """Count the stored trials of these models. One query; models without any are left out."""
    rows = (
        Cell.objects.filter(config__model__in=[model.pk for model in models], run__deleted_at=None)
        .filter(_TEXT_METHOD & Q(calling_turns__gt=0) | _NATIVE_METHOD)
        .values("config__model")
        .annotate(
            text_turns=Sum("calling_turns", filter=_TEXT_METHOD, default=0),
            parse_errors=Sum("parse_error_turns", filter=_TEXT_METHOD, default=0),
            due_trials=Sum(F("called_rightly") + F("call_missed"), filter=_NATIVE_METHOD, default=0),
            structured=Sum("structured_answers", filter=_NATIVE_METHOD, default=0),
            streamed=Sum("structured_answers", filter=_NATIVE_METHOD & Q(config__stream=True), default=0),
            several=Sum("calls", filter=_HAS_PARALLEL_CALLS, default=0),
            text_until=Max(_RUN_ENDED_AT, filter=_TEXT_METHOD),
            structured_until=Max(_RUN_ENDED_AT, filter=_HAS_STRUCTURED_CALLS),
        )
    )
    return {row["config__model"]: _build_measured_calls(row) for row in rows}


def _build_measured_calls(row: Mapping[str, Any]) -> MeasuredCalls:
    counts = {name: value for name, value in row.items() if name != "config__model"}
    return MeasuredCalls(**counts | {"several": bool(row["several"])})


def _list_measured(measured: MeasuredCalls, probed: Sequence[CapabilityRecord]) -> list[CapabilityRecord]:
    """What the trials show. A later probe whose requests with tools were refused outweighs calls seen before it."""
    told: list[CapabilityRecord] = []
    if measured.json_stability is not None:
        who = f"{measured.parse_errors} of {measured.text_turns} turns could not be read"
        told.append(
            CapabilityRecord("measured", Capabilities(json_stability=measured.json_stability), who, measured.text_until)
        )
    if measured.structured and not _is_refused_since(measured.structured_until, probed):
        who = f"{measured.structured} answers with structured calls in trials"
        seen = Capabilities(
            supports_tool_use=True,
            tools_field="accepted",
            supports_parallel_tools=measured.several or None,
            supports_stream_tools=bool(measured.streamed) or None,
        )
        told.append(CapabilityRecord("measured", seen, who, measured.structured_until))
    return told


def _is_refused_since(until: datetime | None, probed: Sequence[CapabilityRecord]) -> bool:
    refusals = (one.at for one in probed if one.capabilities.tools_field == "refused")
    return any(until is None or (at is not None and at > until) for at in refusals)
