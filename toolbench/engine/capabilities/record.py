"""Capabilities of an endpoint as far as they are known, with their sources.

Unknown fields are None. Declared capabilities (by a user or the provider's documentation), probed ones (seen by a
probe) and measured ones (seen in stored trials) are kept apart; `merge_records` merges them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal, TypeAlias

from toolbench.engine.types import JsonObject

Ternary: TypeAlias = bool | None
Source: TypeAlias = Literal["declared", "probed", "measured"]

AUTHORITY: tuple[Source, ...] = ("declared", "probed", "measured")  # sources in ascending order of authority
MIN_CALL_TURNS = 20  # turns with an attempted call; with fewer, the stability is not rated
# Largest error rate for each stability: turns whose call cannot be read / turns with an attempted call.
MAX_ERROR_RATE_FOR_HIGH = 0.02
MAX_ERROR_RATE_FOR_MEDIUM = 0.10


def _build_metadata(doc: str) -> dict[str, str]:
    return {"doc": doc}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Capabilities of one model at one endpoint.

    None means unknown; an empty tuple means that there are none. `DOCS` has the description of each field.
    """

    supports_tool_use: Ternary = field(
        default=None, metadata=_build_metadata("Tool calls come back in their own field.")
    )
    tools_field: str | None = field(
        default=None, metadata=_build_metadata("What the endpoint does with tools: accepted, dropped or refused.")
    )
    text_format: str | None = field(
        default=None, metadata=_build_metadata("The text format in which the model writes calls into its text.")
    )
    supports_parallel_tools: Ternary = field(
        default=None, metadata=_build_metadata("The model can make several calls in one answer.")
    )
    tool_choice_values: tuple[str, ...] | None = field(
        default=None, metadata=_build_metadata("Values of tool_choice that have an effect.")
    )
    supports_stream_tools: Ternary = field(
        default=None, metadata=_build_metadata("Streamed answers have the same calls as unstreamed ones.")
    )
    supports_strict: Ternary = field(default=None, metadata=_build_metadata("The endpoint accepts tools with strict."))
    calls_shape: str | None = field(
        default=None,
        metadata=_build_metadata(
            "The form of calls: list, object (one call without a list) or function_call (the older field)."
        ),
    )
    arguments_shape: str | None = field(
        default=None,
        metadata=_build_metadata("The form of arguments: text, object, blank, twice_encoded or unreadable."),
    )
    ids: str | None = field(default=None, metadata=_build_metadata("Ids of calls: unique, missing or repeated."))
    tool_id_pattern: str | None = field(
        default=None, metadata=_build_metadata("A regular expression that call ids must match when they are sent back.")
    )
    content_null_ok: Ternary = field(
        default=None, metadata=_build_metadata("The endpoint accepts earlier messages with calls and content null.")
    )
    allows_midturn_system: Ternary = field(
        default=None, metadata=_build_metadata("The endpoint accepts a system message in the middle of a conversation.")
    )
    reasoning_replay: str | None = field(
        default=None, metadata=_build_metadata("How earlier reasoning is sent back: none, field, tags or details.")
    )
    json_stability: str | None = field(
        default=None, metadata=_build_metadata("How often calls in text can be read: high, medium or low.")
    )
    constrained: tuple[str, ...] | None = field(
        default=None, metadata=_build_metadata("Constraints that the endpoint enforces; the first one is used.")
    )
    raw_completion: Ternary = field(
        default=None,
        metadata=_build_metadata("The server has a raw completion endpoint, which continues rendered prompts."),
    )
    prompt_endpoint: str | None = field(
        default=None,
        metadata=_build_metadata(
            "The raw completion endpoint: completions (OpenAI's) or llama (llama.cpp's own /completion)."
        ),
    )
    schema_dialect: tuple[str, ...] | None = field(
        default=None, metadata=_build_metadata("JSON Schema keywords that the endpoint refuses.")
    )
    name_pattern: str | None = field(
        default=None, metadata=_build_metadata("A regular expression that tool names must match.")
    )
    limit_name: str | None = field(
        default=None,
        metadata=_build_metadata(
            "The parameter that limits the length of an answer: max_tokens or max_completion_tokens."
        ),
    )
    effort_name: str | None = field(
        default=None,
        metadata=_build_metadata(
            "The parameter that sets the reasoning effort: reasoning_effort, reasoning.effort, output_config.effort "
            "or thinking.budget_tokens."
        ),
    )
    max_tools: int | None = field(default=None, metadata=_build_metadata("Maximum number of tools in a request."))
    honours: tuple[str, ...] | None = field(
        default=None, metadata=_build_metadata("Sampling options that have an effect.")
    )
    ignores: tuple[str, ...] | None = field(
        default=None, metadata=_build_metadata("Sampling options that are accepted and have no effect.")
    )
    usual_findings: tuple[str, ...] | None = field(
        default=None,
        metadata=_build_metadata("Codes of findings that are normal for this endpoint and are therefore not reported."),
    )

    def get_known_values(self) -> JsonObject:
        """Return the values of the fields that are not None, by field name."""
        return {name: value for name in DOCS if (value := getattr(self, name)) is not None}


DOCS: dict[str, str] = {f.name: f.metadata["doc"] for f in fields(Capabilities)}
_LIST_FIELDS = frozenset(f.name for f in fields(Capabilities) if f.type == tuple[str, ...] | None)
_TERNARY_FIELDS = frozenset(f.name for f in fields(Capabilities) if f.type == Ternary)


class CapabilitiesError(ValueError):
    """An unknown capability field, or a value that its field does not allow; the message names the field."""


def parse_capabilities(patch: Mapping[str, Any]) -> Capabilities:
    """Parse capabilities from JSON; null means unknown.

    Raises:
        CapabilitiesError: a field is unknown, a value has the wrong type, or `max_tools` is negative.
    """
    unknown_names = sorted(set(patch) - set(DOCS))
    if unknown_names:
        raise CapabilitiesError(f"no capability is called {', '.join(unknown_names)}")
    return Capabilities(**{name: _parse_field(name, value) for name, value in patch.items() if value is not None})


def _parse_field(name: str, value: Any) -> Any:
    if name in _LIST_FIELDS:
        if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
            return tuple(value)
    elif name in _TERNARY_FIELDS:
        if isinstance(value, bool):
            return value
    elif name == "max_tools":
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    elif isinstance(value, str):
        return value
    raise CapabilitiesError(f"{name} cannot be {value!r}")


@dataclass(frozen=True, slots=True)
class CapabilityRecord:
    """Capabilities with their source.

    Attributes:
        source: declared, probed or measured.
        who: a description of the source for users, such as `probe 12`, `a person` or `OpenAI's API reference`.
        at: when the capabilities were declared or seen; None if this is not known, as for declarations of users.
        probe_id: id of the probe that saw the capabilities; None for other sources.
    """

    source: Source
    capabilities: Capabilities
    who: str = ""
    at: datetime | None = None
    probe_id: int | None = None


@dataclass(frozen=True, slots=True)
class EffectiveCapabilities:
    """The merge of all records of an endpoint.

    Attributes:
        origins: the record that each known field comes from, by field.
        overruled_records: by field, the records whose value was replaced by a different one, in the order of the merge.
    """

    capabilities: Capabilities
    origins: Mapping[str, CapabilityRecord]
    overruled_records: Mapping[str, tuple[CapabilityRecord, ...]]


def merge_records(records: Iterable[CapabilityRecord]) -> EffectiveCapabilities:
    """Merge records field by field by authority: measured over probed over declared.

    Among records of the same authority, the one that comes later in `records` wins.
    """
    records_by_authority = sorted(records, key=lambda record: AUTHORITY.index(record.source))
    values: JsonObject = {}
    origins: dict[str, CapabilityRecord] = {}
    overruled_records: dict[str, tuple[CapabilityRecord, ...]] = {}
    for record in records_by_authority:
        for name, value in record.capabilities.get_known_values().items():
            if name in values and values[name] != value:
                overruled_records[name] = (*overruled_records.get(name, ()), origins[name])
            values[name], origins[name] = value, record
    return EffectiveCapabilities(Capabilities(**values), origins, overruled_records)


def rate_json_stability(unreadable_turn_count: int, call_turn_count: int) -> str | None:
    """Return how reliably calls in text can be read: high, medium or low; None for fewer than MIN_CALL_TURNS turns.

    Args:
        unreadable_turn_count: number of turns whose call could not be read.
        call_turn_count: number of turns in which the model attempted a call.
    """
    if call_turn_count < MIN_CALL_TURNS:
        return None
    error_rate = unreadable_turn_count / call_turn_count
    if error_rate <= MAX_ERROR_RATE_FOR_HIGH:
        return "high"
    return "medium" if error_rate <= MAX_ERROR_RATE_FOR_MEDIUM else "low"
