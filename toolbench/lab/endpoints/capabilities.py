"""Capabilities of a model at its provider: declared, probed, measured, and merged from all three."""

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

PROBE_MAX_AGE = timedelta(days=7)
MIN_TRIALS_WITHOUT_CALLS = 20  # fewer trials that needed a call show nothing
_TEXT_METHOD = Q(config__method="text_json")
_NATIVE_METHOD = Q(config__method="native")
_HAS_STRUCTURED_CALLS = _NATIVE_METHOD & Q(structured_answers__gt=0)
_HAS_PARALLEL_CALLS = _HAS_STRUCTURED_CALLS & Q(calling_answers=F("structured_answers"), calls__gt=F("calling_answers"))
_RUN_ENDED_AT = Coalesce("run__finished_at", "run__created_at")


@dataclass(frozen=True, slots=True)
class MeasuredCalls:
    """Counts of the stored trials of one model, by the method that requested the calls.

    Attributes:
        text_turns: answers with the method text_json that tried to call.
        parse_errors: those of them that could not be read.
        due_trials: trials with the method native that needed a call and got an answer.
        structured: answers with the method native that have calls in the field of the API.
        streamed: those of them that came as a stream.
        several: whether an answer had more than one call; only cells in which no call came as text are counted.
        text_until: when the newest run with calls as text ended; its launch if it has not ended, None without one.
        structured_until: the same for the newest run with structured calls.
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
        """The share of readable calls as "high", "medium" or "low"; None with too few answers."""
        return rate_json_stability(self.parse_errors, self.text_turns)

    @property
    def trials_without_calls(self) -> int:
        """The number of trials that needed a call, if none of them had a structured one.

        It is 0 if one had, or with fewer than `MIN_TRIALS_WITHOUT_CALLS` trials.
        """
        return self.due_trials if not self.structured and self.due_trials >= MIN_TRIALS_WITHOUT_CALLS else 0


def get_capabilities_by_model(models: Iterable[Model]) -> dict[int, EffectiveCapabilities]:
    """Return the merged capabilities of each model, by its id.

    Two queries, if `models` come with their providers.
    """
    models_listed = list(models)
    return merge_capabilities(models_listed, get_measured_calls(models_listed))


def merge_capabilities(
    models: Iterable[Model], measured: Mapping[int, MeasuredCalls]
) -> dict[int, EffectiveCapabilities]:
    """Return the merged capabilities of each model, by its id, with one query.

    Args:
        models: with their providers.
        measured: the counts of their stored trials, by id.
    """
    models_listed = list(models)
    probed = _list_probed(models_listed)
    return {
        model.pk: merge_records(
            (
                *_list_declared(model),
                *probed[model.pk],
                *_list_measured(measured.get(model.pk, MeasuredCalls()), probed[model.pk]),
            )
        )
        for model in models_listed
    }


def get_model_capabilities(model: Model) -> EffectiveCapabilities:
    """Return the merged capabilities of one model with two queries."""
    return get_capabilities_by_model([model])[model.pk]


def get_template_slug(provider: Provider) -> str:
    """Return the slug of the template whose declared capabilities apply to the provider's models."""
    return "llama-cpp" if provider.kind == Provider.Kind.LOCAL else provider.template


def read_probe_capabilities(probe: Probe) -> Capabilities:
    """Return the capabilities that a probe found.

    They are empty if another version stored them in a form that cannot be read.
    """
    return _read_capabilities(probe.learned)


def _read_capabilities(stored: Mapping[str, Any]) -> Capabilities:
    try:
        return parse_capabilities(stored)
    except CapabilitiesError:
        return Capabilities()


def _list_declared(model: Model) -> list[CapabilityRecord]:
    declared = [
        capabilities
        for capabilities in (find_declared_capabilities(get_template_slug(model.provider)),)
        if capabilities is not None
    ]
    if model.constraint:
        record = Capabilities(constrained=(model.constraint,))
        declared.append(CapabilityRecord("declared", record, "the model's row"))
    record = _read_capabilities(model.capabilities)
    return [*declared, CapabilityRecord("declared", record, "a person")] if record.known() else declared


def _list_probed(models: Iterable[Model]) -> Mapping[int, list[CapabilityRecord]]:
    """Return the latest probe of each kind from the last `PROBE_MAX_AGE`, oldest first, by the model's id."""
    since = timezone.now() - PROBE_MAX_AGE
    ids = [model.pk for model in models]
    rows = Probe.objects.filter(model__in=ids, state=Probe.State.DONE, ok=True, finished_at__gte=since)
    latest = {(probe.model_id, probe.kind): probe for probe in rows.order_by("finished_at").defer("checks")}
    records: dict[int, list[CapabilityRecord]] = defaultdict(list)
    for probe in sorted(latest.values(), key=lambda probe: probe.pk):
        records[probe.model_id].append(
            CapabilityRecord("probed", read_probe_capabilities(probe), f"probe {probe.pk}", probe.finished_at, probe.pk)
        )
    return records


def get_measured_calls(models: Iterable[Model]) -> dict[int, MeasuredCalls]:
    """Count the stored trials of these models with one query.

    Returns:
        The counts by the model's id, without models that have no counted trials.
    """
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
    """Return the capabilities that the trials show.

    Structured calls are ignored if a later probe found that the endpoint refuses requests with tools.
    """
    records: list[CapabilityRecord] = []
    if measured.json_stability is not None:
        note = f"{measured.parse_errors} of {measured.text_turns} turns could not be read"
        records.append(
            CapabilityRecord(
                "measured", Capabilities(json_stability=measured.json_stability), note, measured.text_until
            )
        )
    if measured.structured and not _is_refused_since(measured.structured_until, probed):
        note = f"{measured.structured} answers with structured calls in trials"
        seen = Capabilities(
            supports_tool_use=True,
            tools_field="accepted",
            supports_parallel_tools=measured.several or None,
            supports_stream_tools=bool(measured.streamed) or None,
        )
        records.append(CapabilityRecord("measured", seen, note, measured.structured_until))
    return records


def _is_refused_since(until: datetime | None, probed: Sequence[CapabilityRecord]) -> bool:
    refusals = (record.at for record in probed if record.capabilities.tools_field == "refused")
    return any(until is None or (at is not None and at > until) for at in refusals)
