"""Documents of the API as dataclasses. A member for which the dataclass has no field is ignored."""

import types
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
JsonObject = dict[str, Any]
_CHECK_VERSIONS = "Check that the versions of client and server match."


@dataclass(frozen=True, slots=True)
class RemoteRate:
    """Share of trials with its interval.

    Attributes:
        k: number of trials that passed.
        n: number of trials that are counted.
        share: rate of passed trials as a fraction, None if n is 0. It differs from k / n if the rate weights its
            scenarios equally.
        low: lower bound of the interval, as a fraction; None if n is 0 or the interval is not valid.
        high: upper bound, as a fraction; None if `low` is None.
        interval: name of the interval's method, with the confidence level.
    """

    k: int
    n: int
    share: float | None
    low: float | None
    high: float | None
    interval: str


@dataclass(frozen=True, slots=True)
class RemoteCounts:
    """Numbers of trials by outcome, and the requests, tokens and cost of all of them.

    Attributes:
        trials: number of trials in any state.
        infra: trials with an infrastructure error.
        cost: dollars; None if the cost of a trial is unknown, or if there is no cost yet.
    """

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
    """Run. The attributes have the meaning of `RunDocument` in the OpenAPI document."""

    id: int
    title: str
    label: str
    state: str
    stopped_reason: str
    simulated: bool
    imported: bool
    purpose: str
    seed: int
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
        """Whether the run is finished or cancelled."""
        return self.state in ("finished", "cancelled")


@dataclass(frozen=True, slots=True)
class RemoteRunSummary:
    """Run in a list of runs, with its counts and rates.

    Attributes:
        answered: answered success; None for a run of several configurations or scenario groups.
        delivered: end-to-end success; None if `answered` is None.
    """

    run: RemoteRun
    models: list[str]
    counts: RemoteCounts
    answered: RemoteRate | None
    delivered: RemoteRate | None


@dataclass(frozen=True, slots=True)
class RemoteQuantile:
    """Quantile of `n` times, and the bounds of its 95 % interval, in milliseconds; an open bound is None."""

    value: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class RemoteCell:
    """Cell: one configuration in one scenario.

    Attributes:
        control: whether the scenario needs no tool call.
        p50_ms: median duration; None without times.
        p95_ms: 95th percentile of the duration; None without times.
    """

    cell_id: int
    scenario: str
    control: bool
    counts: RemoteCounts
    answered: RemoteRate
    p50_ms: RemoteQuantile | None
    p95_ms: RemoteQuantile | None


@dataclass(frozen=True, slots=True)
class RemoteConfig:
    """Configuration of a run with its figures in one group of scenarios.

    The attributes have the meaning of `ConfigDocument` in the OpenAPI document.
    """

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
    """Run with its configurations.

    Attributes:
        live: whether figures can still change.
        failures: failure groups, as FailureGroupDocument of the OpenAPI document.
        retryable: number of trials with infrastructure errors that can be queued again.
        resumable: number of cancelled trials that can be queued again.
        seconds_left: expected time to the end, in seconds; None if it is unknown, or if no trial is queued or running.
    """

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
    """Plan of a run.

    Attributes:
        configs: configurations, as PlannedConfigDocument of the OpenAPI document.
        cells: number of cells.
        skipped: requested configurations and cells that are left out, as SkippedDocument of the OpenAPI document.
        trials: maximum number of trials.
        least_requests: number of requests if every trial passes at the first attempt.
        most_requests: number of requests if every turn and retry is used.
        paid_requests: maximum number of paid requests by name of the provider.
        agreed: number of paid requests to confirm at the launch; 0 if none has to be confirmed.
        estimate: expected requests, tokens, cost and time; None if they are unknown.
    """

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
    """Trial in a list of trials. The attributes have the meaning of `TrialDocument` in the OpenAPI document."""

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
    """Exchange or tool execution of a trial.

    The attributes have the meaning of `StepDocument` in the OpenAPI document.
    """

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
    """Trial with its steps, verdict and final answer, as `TrialDetailDocument` of the OpenAPI document."""

    trial: RemoteTrial
    headline: str
    final_text: str
    note: str
    verdict: JsonObject
    steps: list[RemoteStep]


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """Model of a provider; `canonical` is empty if the canonical model is unknown."""

    id: int
    provider_id: int
    provider: str
    name: str
    canonical: str
    tags: list[str]
    retired: bool


@dataclass(frozen=True, slots=True)
class RemoteSentMessage:
    """Sent message of a conversation, with its run.

    Attributes:
        conversation: slug of the conversation.
        message: number of the message, from 1.
        trials: ids of the trials that answer the message.
    """

    conversation: str
    message: int
    run: RemoteRun
    trials: list[int]


@dataclass(frozen=True, slots=True)
class RemoteConversationTrial:
    """Answer of a conversation.

    Attributes:
        id: id of the trial that gave the answer.
        message: number of the message, from 1.
        index: number of the repeat, from 1.
        outcome: outcome of the trial; `queued` or `running` without one.
        model: name of the model.
    """

    id: int
    message: int
    index: int
    outcome: str
    model: str


@dataclass(frozen=True, slots=True)
class RemoteConversation:
    """Conversation of the playground.

    The attributes have the meaning of `ConversationDocument` in the OpenAPI document.
    """

    slug: str
    title: str
    messages: int
    waiting: bool
    trials: list[RemoteConversationTrial]
    trial: int | None
    history: list[JsonObject] | None
    state: JsonObject | None


@dataclass(frozen=True, slots=True)
class RemoteCase:
    """Test case. `set` is the name of its set, `version` the number of its current version."""

    slug: str
    title: str
    set: str
    version: int


@dataclass(frozen=True, slots=True)
class RemotePage:
    """Page of a list. `next` is the cursor of the next page; None on the last one."""

    items: list[JsonObject]
    next: int | str | None


@dataclass(frozen=True, slots=True)
class RemoteSentence:
    """Result of an action in words."""

    sentence: str


def read_document(kind: type[T], value: Any) -> T:
    """Return a JSON object as an instance of a dataclass.

    Args:
        kind: the dataclass.
        value: the JSON object. Only members whose type is a list, a time or a dataclass are checked.

    Raises:
        ValueError: `value` or a member is not an object, a member is missing or no list, or a time cannot be read.
    """
    if not is_dataclass(kind) or not isinstance(value, Mapping):
        raise ValueError(f"The server sent {type(value).__name__} instead of {kind.__name__}. {_CHECK_VERSIONS}")
    hints = get_type_hints(kind)
    missing_names = [field.name for field in fields(kind) if field.name not in value]
    if missing_names:
        names = ", ".join(missing_names)
        raise ValueError(f"The server's {kind.__name__} lacks {names}. {_CHECK_VERSIONS}")
    document = kind(**{field.name: _read_value(hints[field.name], value[field.name]) for field in fields(kind)})
    return cast(T, document)


def _read_value(hint: Any, value: Any) -> Any:
    """Convert a JSON value to the type of its field."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        hint = next(option for option in get_args(hint) if option is not type(None))
        return _read_value(hint, value)
    if origin is list:
        if not isinstance(value, list):
            raise ValueError(f"The server sent {type(value).__name__} instead of a list. {_CHECK_VERSIONS}")
        return [_read_value(get_args(hint)[0], item) for item in value]
    if is_dataclass(hint) and isinstance(hint, type):
        return read_document(hint, value)
    return datetime.fromisoformat(str(value)) if hint is datetime else value
