"""What the loop asks of the world, what it is sent back, and how it ends."""

from collections.abc import Callable
from dataclasses import field
from enum import StrEnum
from typing import Protocol

from toolbench.engine.light_dataclass import light
from toolbench.engine.types import Envelope, JsonObject, Message, SchemaError, ToolCall, TransformChange, Turn, Usage


class AnswerDecoder(Protocol):
    """Turns an answer's bytes into a Turn: fed once with a whole body, or chunk by chunk with a stream."""

    def feed(self, chunk: bytes) -> None: ...

    def close(self) -> Turn:
        """Raises engine.errors.MalformedAnswerError when the bytes are no answer. Either way it is empty again."""
        ...

    @property
    def partial(self) -> Message:
        """The message as far as it came; {} where that is only known at the end."""
        ...


@light(frozen=True, slots=True)
class OmittedParameter:
    """An optional parameter that a request goes without, and why. `known` says that it was known before the trial."""

    name: str
    why: str
    known: bool = True


@light(frozen=True, slots=True)
class Request:
    """One request, ready to be sent: `path` is relative to the endpoint's prefix (`chat/completions`), `body` the
    exact bytes."""

    turn: int
    path: str
    body: bytes
    tools_sent: bool
    stream: bool = False
    changes: tuple[TransformChange, ...] = ()  # what message and tool transforms changed on the way out
    cut_retries: int = 0  # how often a streamed answer that breaks off may be asked for again
    message: int = 0  # which of the user's messages it belongs to, from 0
    said: str = ""  # the text of a further message that comes with it
    left_out: tuple[OmittedParameter, ...] = ()  # parameters that it would have had


@light(frozen=True, slots=True)
class Delta:
    """A piece of a streamed answer: of its text, its reasoning, or the arguments of the `call`-th call from 0.
    `closed` says that the call's arguments are whole."""

    text: str = ""
    reasoning: str = ""
    call: int | None = None
    name: str = ""
    arguments: str = ""
    closed: bool = False


@light(frozen=True, slots=True)
class Ask:
    """`read_refused_answer` reads what a server quotes of an answer that it refused to pass on: a turn where the policy
    wants that, else a sentence for the error's hint, "" for none."""

    request: Request
    decoder: AnswerDecoder
    read_refused: Callable[[str], Turn | str] = lambda text: ""


@light(frozen=True, slots=True)
class PreparedCall:
    """A call that may run: name resolved, arguments parsed and valid by the tool's schema. `alone` and
    `timeout_seconds` are its tool's."""

    id: str
    name: str
    arguments: JsonObject
    alone: bool = False
    timeout_seconds: float | None = None


@light(frozen=True, slots=True)
class Execute:
    """`side_by_side`: calls that follow one another may run at the same time, but for those that run alone."""

    turn: int
    calls: tuple[PreparedCall, ...]
    side_by_side: bool = False


@light(frozen=True, slots=True)
class Outcome:
    """What a tool gave back: a value, or the failure it raised (`code` ARGUMENT_ERROR, INTERNAL_ERROR, TOOL_TIMEOUT
    …)."""

    value: object = None
    error_code: str = ""
    error_message: str = ""
    started_ms: float = 0.0
    duration_ms: float = 0.0


@light(frozen=True, slots=True)
class ExchangeError:
    """A failed exchange as a value. `code` is a row of providers/data/outcomes.json; `tool_support` is true when the
    endpoint says that this model or route cannot use tools."""

    code: str
    message: str
    status: int | None = None
    infrastructure: bool = True
    retryable: bool = False
    tool_support: bool = False
    hint: str = ""
    generation: str = ""  # what the model wrote, where the error quotes it
    named: tuple[str, ...] = ()  # places in the request that fields of the error name, such as `tool_choice.type`


@light(frozen=True, slots=True)
class FailedExchange:
    error: ExchangeError


class StopReason(StrEnum):
    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    BUDGET = "budget"


@light(frozen=True, slots=True)
class StopRun:
    reason: StopReason


LoopInput = Turn | FailedExchange | tuple[Outcome, ...] | StopRun


@light(frozen=True, slots=True)
class ToolResult:
    """One call of one turn with what became of it. `parse_status` is ok, invalid_json or too_large; a refused call
    never ran.
    `content` is the exact text sent back to the model."""

    call: ToolCall
    arguments: JsonObject | None
    parse_status: str
    envelope: Envelope
    content: str
    executed: bool
    schema_errors: tuple[SchemaError, ...] = ()
    output_replaced: bool = False
    changes: tuple[TransformChange, ...] = ()
    duration_ms: float = 0.0


@light(frozen=True, slots=True)
class TurnRecord:
    """One turn as it happened: what was asked, the answer (or the failure), the results in call order."""

    turn: int
    request: Request
    answer: Turn | None
    failure: ExchangeError | None = None
    results: tuple[ToolResult, ...] = ()


class EndReason(StrEnum):
    """How a trial's loop ended. FINAL is the only good one; LENGTH is a final answer that the token limit cut. The
    others are typed errors. All keep record, history and usage."""

    FINAL = "FINAL"
    LENGTH = "LENGTH"
    NO_TOOL_CALLS = "NO_TOOL_CALLS"
    TOOL_ERROR = "TOOL_ERROR"
    MAX_TURNS_EXCEEDED = "MAX_TURNS_EXCEEDED"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    CANCELLED = "CANCELLED"
    BUDGET_SPENT = "BUDGET_SPENT"
    PROVIDER_ERROR = "PROVIDER_ERROR"


ANSWERED_ENDS = frozenset({EndReason.FINAL, EndReason.LENGTH})
"""The ends with a final answer, whole or cut."""


@light(frozen=True, slots=True)
class LoopResult:
    """`asked_again` counts requests that quoted an error because a call could not be run: second samples."""

    end: EndReason
    final_text: str
    history: tuple[Message, ...]
    turns: tuple[TurnRecord, ...]
    usage: Usage
    message: str = ""
    error: ExchangeError | None = None
    failed_tools: tuple[str, ...] = ()
    asked_again: int = 0


@light(frozen=True, slots=True)
class Event:
    """Something that happened, for whoever listens; the driver stamps the time. `type` and payload keys are those of
    the case study."""

    type: str
    turn: int
    data: JsonObject = field(default_factory=dict)


EmitEvent = Callable[[Event], None]
OnDelta = Callable[[Delta], None]
