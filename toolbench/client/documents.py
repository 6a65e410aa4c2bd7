"""Typed documents of the API. Members that a newer server adds are ignored."""

import types
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RemoteRate:
    """A share of trials with its interval; None where nothing was counted or no interval is valid."""

    k: int
    n: int
    share: float | None
    low: float | None
    high: float | None
    interval: str


@dataclass(frozen=True, slots=True)
class RemoteCounts:
    """Counts of trials and what they used; `cost` is in dollars, None if it is unknown."""

    trials: int
    passed: int
    failed: int
    infra: int
    not_applicable: int
    cancelled: int
    running: int
    queued: int
    requests: int
    input_tokens: int
    output_tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """A run."""

    id: int
    title: str
    label: str
    state: str
    stopped_reason: str
    simulated: bool
    imported: bool
    purpose: str
    trials_per_cell: int
    trial_count: int
    request_cap: int | None
    token_cap: int | None
    requests_reserved: int
    tokens_used: int
    repeat_of: int | None
    created_at: datetime
    finished_at: datetime | None
    url: str

    @property
    def has_ended(self) -> bool:
        """Whether no trial of it will run any more."""
        return self.state in ("finished", "cancelled")


@dataclass(frozen=True, slots=True)
class RemoteRunSummary:
    """A run of the list with its sums."""

    run: RemoteRun
    models: list[str]
    counts: RemoteCounts
    answered: RemoteRate | None
    delivered: RemoteRate | None


@dataclass(frozen=True, slots=True)
class RemoteQuantile:
    """A quantile of times in milliseconds; a bound is None where it is open."""

    value: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class RemoteCell:
    """One configuration in one scenario."""

    cell_id: int
    scenario: str
    control: bool
    counts: RemoteCounts
    answered: RemoteRate
    p50_ms: RemoteQuantile | None
    p95_ms: RemoteQuantile | None


@dataclass(frozen=True, slots=True)
class RemoteConfig:
    """A configuration of a run with its figures."""

    id: int
    provider: str
    model: str
    profile: str
    strategy: str
    method: str
    stream: bool
    group: str
    counts: RemoteCounts
    answered: RemoteRate
    delivered: RemoteRate
    cells: list[RemoteCell]


@dataclass(frozen=True, slots=True)
class RemoteRunDetail:
    """A run with its configurations; `live` says whether its figures still change."""

    run: RemoteRun
    live: bool
    counts: RemoteCounts
    configs: list[RemoteConfig]
    failures: list[JsonObject]
    retryable: int
    resumable: int
    seconds_left: float | None


@dataclass(frozen=True, slots=True)
class RemotePlan:
    """What a launch would write; `agreed` is the number of paid requests to confirm, 0 for none."""

    configs: list[JsonObject]
    cells: int
    skipped: list[JsonObject]
    trials: int
    least_requests: int
    most_requests: int
    paid_requests: dict[str, int]
    agreed: int
    estimate: JsonObject | None


@dataclass(frozen=True, slots=True)
class RemoteTrial:
    """A trial of the list."""

    id: int
    run: int
    cell: int
    config: int
    provider: str
    model: str
    profile: str
    strategy: str
    method: str
    scenario: str
    index: int
    outcome: str
    failure_class: str
    cause: str
    sentence: str
    turns: int
    requests: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    duration_ms: float | None
    label: str
    url: str


@dataclass(frozen=True, slots=True)
class RemoteStep:
    """One exchange or tool execution of a trial."""

    id: int
    ordinal: int
    kind: str
    turn: int
    attempt: int
    status: int | None
    error_code: str
    tool_name: str
    ok: bool | None
    duration_ms: float


@dataclass(frozen=True, slots=True)
class RemoteTrialDetail:
    """A trial with its steps, verdict and answer."""

    trial: RemoteTrial
    headline: str
    final_text: str
    note: str
    verdict: JsonObject
    steps: list[RemoteStep]


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model of a provider."""

    id: int
    provider_id: int
    provider: str
    name: str
    canonical: str
    retired: bool


def read_document(kind: type[T], value: Any) -> T:
    """Return a JSON object as a dataclass of this kind.

    Raises:
        ValueError: a member is missing. The types of plain values are not checked.
    """
    if not is_dataclass(kind) or not isinstance(value, Mapping):
        raise ValueError(f"The server sent {type(value).__name__} in the place of {kind.__name__}.")
    hints = get_type_hints(kind)
    missing = [item.name for item in fields(kind) if item.name not in value]
    if missing:
        raise ValueError(f"The server's {kind.__name__} lacks {', '.join(missing)}. It may be another version.")
    read = kind(**{item.name: _read_value(hints[item.name], value[item.name]) for item in fields(kind)})
    return cast(T, read)


def _read_value(hint: Any, value: Any) -> Any:
    """Return a value in the type of its field."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        hint = next(option for option in get_args(hint) if option is not type(None))
        return _read_value(hint, value)
    if origin is list:
        return [_read_value(get_args(hint)[0], item) for item in value]
    if is_dataclass(hint) and isinstance(hint, type):
        return read_document(hint, value)
    return datetime.fromisoformat(value) if hint is datetime else value
