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
from toolbench.lab.metrics.pool_version import read_usable_version
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.models import Cell, Model, Probe, Provider

PROBE_MAX_AGE = timedelta(days=7)  # older probes are ignored
MIN_TRIALS_WITHOUT_CALLS = 20  # if fewer trials needed a call, answers without one prove nothing
MAX_UNCACHED_MODELS = 20  # for more models, the counts of pooled (finished) runs are cached in memory
_TEXT_METHOD = Q(config__method="text_json")
_NATIVE_METHOD = Q(config__method="native")
_HAS_STRUCTURED_CALLS = _NATIVE_METHOD & Q(structured_answers__gt=0)
# Each answer with calls has structured ones, and at least one answer has several.
_HAS_PARALLEL_CALLS = _HAS_STRUCTURED_CALLS & Q(calling_answers=F("structured_answers"), calls__gt=F("calling_answers"))
_RUN_ENDED_AT = Coalesce("run__finished_at", "run__created_at")


@dataclass(frozen=True, slots=True)
class MeasuredCalls:
    """Counts of the stored trials of one model, by the method that requested the calls.

    Attributes:
        text_turns: answers with the method text_json that tried to call.
        parse_errors: number of text_turns whose call could not be read.
        call_expected_trials: trials with the method native that needed a call and got an answer.
        answers_with_calls: answers with the method native that have calls in the API's field for calls.
        streamed_with_calls: number of answers_with_calls that were received as a stream.
        has_parallel_calls: whether an answer with the method native had several calls; cells with a call in text are
            not considered.
        text_run_ended_at: the latest time at which a run with text_turns ended, or was launched if it has not ended;
            None if there is no such run.
        structured_run_ended_at: the same for runs with answers_with_calls.
    """

    text_turns: int = 0
    parse_errors: int = 0
    call_expected_trials: int = 0
    answers_with_calls: int = 0
    streamed_with_calls: int = 0
    has_parallel_calls: bool = False
    text_run_ended_at: datetime | None = None
    structured_run_ended_at: datetime | None = None

    @property
    def json_stability(self) -> str | None:
        """The share of readable calls in text as "high", "medium" or "low"; None with too few answers."""
        return rate_json_stability(self.parse_errors, self.text_turns)

    @property
    def trials_without_calls(self) -> int:
        """The number of trials that needed a call, if no answer had a structured call.

        It is 0 if an answer had one, or if fewer than `MIN_TRIALS_WITHOUT_CALLS` trials needed a call.
        """
        is_evidence = not self.answers_with_calls and self.call_expected_trials >= MIN_TRIALS_WITHOUT_CALLS
        return self.call_expected_trials if is_evidence else 0

    def add(self, other: "MeasuredCalls") -> "MeasuredCalls":
        """Return the sums of both counts; no trial may be in both."""
        return MeasuredCalls(
            text_turns=self.text_turns + other.text_turns,
            parse_errors=self.parse_errors + other.parse_errors,
            call_expected_trials=self.call_expected_trials + other.call_expected_trials,
            answers_with_calls=self.answers_with_calls + other.answers_with_calls,
            streamed_with_calls=self.streamed_with_calls + other.streamed_with_calls,
            has_parallel_calls=self.has_parallel_calls or other.has_parallel_calls,
            text_run_ended_at=_find_later(self.text_run_ended_at, other.text_run_ended_at),
            structured_run_ended_at=_find_later(self.structured_run_ended_at, other.structured_run_ended_at),
        )


def get_capabilities_by_model(models: Iterable[Model]) -> dict[int, EffectiveCapabilities]:
    """Return the merged capabilities of each model, by its id.

    It takes two queries, up to six for more than `MAX_UNCACHED_MODELS` models, and none without a model.

    Args:
        models: models with their providers loaded; each provider that is not loaded costs one more query.
    """
    model_list = list(models)
    return merge_capabilities(model_list, get_measured_calls(model_list)) if model_list else {}


def merge_capabilities(
    models: Iterable[Model], measured: Mapping[int, MeasuredCalls]
) -> dict[int, EffectiveCapabilities]:
    """Return the merged capabilities of each model, by its id, with one query.

    Args:
        models: models with their providers loaded.
        measured: the counts of their stored trials, by the model's id; a missing model has no trials.
    """
    model_list = list(models)
    probed = _load_probed_records(model_list)
    return {
        model.pk: merge_records(
            (
                *_build_declared_records(model),
                *probed[model.pk],
                *_build_measured_records(measured.get(model.pk, MeasuredCalls()), probed[model.pk]),
            )
        )
        for model in model_list
    }


def get_model_capabilities(model: Model) -> EffectiveCapabilities:
    """Return the merged capabilities of one model with two queries."""
    return get_capabilities_by_model([model])[model.pk]


def get_template_slug(provider: Provider) -> str:
    """Return the slug of the template whose declared capabilities apply to the provider's models.

    It is "llama-cpp" for a local provider, since the local servers that Toolbench installs run llama.cpp. It is "" for
    any other provider without a template.
    """
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


def _build_declared_records(model: Model) -> list[CapabilityRecord]:
    template_record = find_declared_capabilities(get_template_slug(model.provider))
    records = [] if template_record is None else [template_record]
    if model.constraint:
        constraint = Capabilities(constrained=(model.constraint,))
        records.append(CapabilityRecord("declared", constraint, "the constraint of the model"))
    if model.capabilities and (user_settings := _read_capabilities(model.capabilities)).get_known_values():
        records.append(CapabilityRecord("declared", user_settings, "a person"))
    return records


def _load_probed_records(models: Iterable[Model]) -> Mapping[int, list[CapabilityRecord]]:
    """Return the records of each model's latest probe of each kind, by the model's id, oldest first.

    Only probes whose `ok` is True and that finished within the last `PROBE_MAX_AGE` are used.
    """
    since = timezone.now() - PROBE_MAX_AGE
    model_ids = [model.pk for model in models]
    rows = Probe.objects.filter(model__in=model_ids, state=Probe.State.DONE, ok=True, finished_at__gte=since)
    probes = list(rows.order_by("finished_at", "pk").defer("checks"))
    latest = {(probe.model_id, probe.kind): probe.pk for probe in probes}
    records: dict[int, list[CapabilityRecord]] = defaultdict(list)
    for probe in probes:
        if latest[probe.model_id, probe.kind] == probe.pk:
            found = read_probe_capabilities(probe)
            records[probe.model_id].append(
                CapabilityRecord("probed", found, f"probe {probe.pk}", probe.finished_at, probe.pk)
            )
    return records


_pooled_counts: VersionCache[Mapping[int, MeasuredCalls]] = VersionCache(max_entries=2)


def get_measured_calls(models: Iterable[Model]) -> Mapping[int, MeasuredCalls]:
    """Return the counts of the stored trials of these models.

    It takes one query, or up to five for more than `MAX_UNCACHED_MODELS` models: the counts of pooled runs
    are then cached for all models, until a pooled run changes.

    Returns:
        The counts by the model's id, without models that have no counted trials.
    """
    model_ids = [model.pk for model in models]
    if len(model_ids) > MAX_UNCACHED_MODELS and (version := read_usable_version()):
        pooled = _pooled_counts.get(version, "all models", lambda: _count_calls(Q(run__pooled=True)))
        others = _count_calls(Q(run__pooled=False))
        # If a run was pooled, or left the pools, between the queries, its trials are in neither count or in both.
        if read_usable_version() == version:
            added = {pk: others[pk].add(pooled.get(pk, MeasuredCalls())) for pk in others}
            merged = {**pooled, **added}
            return {pk: merged[pk] for pk in model_ids if pk in merged}
    return _count_calls(Q(config__model__in=model_ids))


def _count_calls(condition: Q) -> dict[int, MeasuredCalls]:
    """Return the counts of the cells that meet a condition, by the model's id."""
    rows = (
        Cell.objects.filter(condition, run__deleted_at=None, config__model__isnull=False)
        .filter(_TEXT_METHOD & Q(calling_turns__gt=0) | _NATIVE_METHOD)
        .order_by()
        .values("config__model")
        .annotate(
            text_turns=Sum("calling_turns", filter=_TEXT_METHOD, default=0),
            parse_errors=Sum("parse_error_turns", filter=_TEXT_METHOD, default=0),
            call_expected_trials=Sum(F("called_rightly") + F("call_missed"), filter=_NATIVE_METHOD, default=0),
            answers_with_calls=Sum("structured_answers", filter=_NATIVE_METHOD, default=0),
            streamed_with_calls=Sum("structured_answers", filter=_NATIVE_METHOD & Q(config__stream=True), default=0),
            has_parallel_calls=Sum("calls", filter=_HAS_PARALLEL_CALLS, default=0),
            text_run_ended_at=Max(_RUN_ENDED_AT, filter=_TEXT_METHOD),
            structured_run_ended_at=Max(_RUN_ENDED_AT, filter=_HAS_STRUCTURED_CALLS),
        )
    )
    return {row["config__model"]: _build_counts(row) for row in rows}


def _build_counts(row: Mapping[str, Any]) -> MeasuredCalls:
    counts = {name: value for name, value in row.items() if name != "config__model"}
    return MeasuredCalls(**counts | {"has_parallel_calls": bool(row["has_parallel_calls"])})


def _find_later(first: datetime | None, second: datetime | None) -> datetime | None:
    return max((moment for moment in (first, second) if moment), default=None)


def _build_measured_records(measured: MeasuredCalls, probed: Sequence[CapabilityRecord]) -> list[CapabilityRecord]:
    """Return the capabilities that the trials show.

    Structured calls are ignored if a later probe found that the endpoint refuses requests with tools.
    """
    records: list[CapabilityRecord] = []
    if measured.json_stability is not None:
        note = f"{measured.parse_errors} of {measured.text_turns} turns could not be read"
        records.append(
            CapabilityRecord(
                "measured", Capabilities(json_stability=measured.json_stability), note, measured.text_run_ended_at
            )
        )
    if measured.answers_with_calls and not _is_refused_since(measured.structured_run_ended_at, probed):
        note = f"{measured.answers_with_calls} answers with structured calls in trials"
        capabilities = Capabilities(
            supports_tool_use=True,
            tools_field="accepted",
            supports_parallel_tools=measured.has_parallel_calls or None,
            supports_stream_tools=bool(measured.streamed_with_calls) or None,
        )
        records.append(CapabilityRecord("measured", capabilities, note, measured.structured_run_ended_at))
    return records


def _is_refused_since(ended_at: datetime | None, probed: Sequence[CapabilityRecord]) -> bool:
    """Return whether a probe after `ended_at` found that the endpoint refuses tools.

    If `ended_at` is None, every such probe counts.
    """
    refusals = (record.at for record in probed if record.capabilities.tools_field == "refused")
    return any(ended_at is None or (at is not None and at > ended_at) for at in refusals)
