"""Values that the loop and its driver exchange: steps, replies, events and the result of a run."""

from collections.abc import Callable
from dataclasses import field
from enum import StrEnum
from typing import Protocol

from toolbench.engine.light_dataclass import light
from toolbench.engine.types import Envelope, JsonObject, Message, SchemaError, ToolCall, TransformChange, Turn, Usage


class AnswerDecoder(Protocol):
    """A decoder that turns the bytes of an answer into a turn.

    Call `feed` once with a whole body, or with each chunk of a stream.
    """

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes of the answer."""
        ...

    def close(self) -> Turn:
        """Return the turn and reset the decoder for another attempt, also after an error.

        Raises:
            MalformedAnswerError: the bytes are not an answer.
        """
        ...

    @property
    def partial(self) -> Message:
        """The message so far; {} before any content, and always if the answer is read only at its end."""
        ...


@light(frozen=True, slots=True)
class OmittedParameter:
    """An optional parameter that was left out of a request.

    Attributes:
        reason: why it was left out, as a sentence or the error message of the endpoint.
        was_omitted_from_start: True if every request of the run leaves it out; False if an error of this run led to it,
            so that earlier requests had it.
    """

    name: str
    reason: str
    was_omitted_from_start: bool = True


@light(frozen=True, slots=True)
class Request:
    """A request that is ready to be sent.

    Attributes:
        turn: the number of the turn, from 0.
        path: the path after the endpoint's API prefix, such as `chat/completions`. A path that begins with a slash
            follows the base URL without that prefix.
        body: the exact bytes to send.
        has_tools: whether the turn may use tools. They are in the field `tools` or in the prompt; but a method that
            requests calls in the prompt leaves them out for the tool choice `none`.
        is_streamed: whether the answer is requested as a stream.
        changes: changes to the request by transforms, by the wire format and by omitted parameters.
        truncation_retries: how often the request may be repeated if its streamed answer breaks off.
        message_index: which of the run's user messages the request belongs to, from 0.
        user_message: the text of a further user message that this request is the first to send; "" for none.
        omitted_parameters: optional parameters that were removed from the body.
    """

    turn: int
    path: str
    body: bytes
    has_tools: bool
    is_streamed: bool = False
    changes: tuple[TransformChange, ...] = ()
    truncation_retries: int = 0
    message_index: int = 0
    user_message: str = ""
    omitted_parameters: tuple[OmittedParameter, ...] = ()


@light(frozen=True, slots=True)
class Delta:
    """A newly received part of a streamed answer: of its text and reasoning, or of one call.

    Attributes:
        text: the new part of the text; "" for none.
        reasoning: the new part of the reasoning; "" for none.
        call_index: the index of the call, from 0; None for text and reasoning.
        name: the tool's name in the call, as far as it was received; "" if this part does not repeat it.
        arguments: the new part of the arguments text.
        is_closed: whether the arguments of the call are complete.
    """

    text: str = ""
    reasoning: str = ""
    call_index: int | None = None
    name: str = ""
    arguments: str = ""
    is_closed: bool = False


@light(frozen=True, slots=True)
class Ask:
    """A step of the loop: send a request and decode the answer.

    Attributes:
        decoder: decodes the answer; the driver passes the received bytes to it.
        parse_refused_answer: parses an answer that the server quotes in an error. It returns a turn if the policy reads
            calls in text and the answer has a readable one; else a sentence for the error's hint, or "" for none.
    """

    request: Request
    decoder: AnswerDecoder
    parse_refused_answer: Callable[[str], Turn | str] = lambda text: ""


@light(frozen=True, slots=True)
class PreparedCall:
    """A call that may run: its tool exists and its arguments were parsed.

    The arguments match the tool's schema, unless the policy does not validate arguments.

    Attributes:
        alone: whether the tool must not run in parallel with others.
        timeout_seconds: the tool's time limit; None for no limit.
    """

    id: str
    name: str
    arguments: JsonObject
    alone: bool = False
    timeout_seconds: float | None = None


@light(frozen=True, slots=True)
class Execute:
    """A step of the loop: run the calls of one turn that may run.

    Attributes:
        is_parallel: whether successive calls may run in parallel, except those with `alone`.
    """

    turn: int
    calls: tuple[PreparedCall, ...]
    is_parallel: bool = False


@light(frozen=True, slots=True)
class Outcome:
    """The tool outcome: the value that a tool returned, or its error.

    Attributes:
        value: the value that the tool returned; None after an error.
        error_code: a code such as ARGUMENT_ERROR, INTERNAL_ERROR or TOOL_TIMEOUT; "" for success.
        error_message: what the model is told about the error; "" for success.
        started_ms: when the tool started, in milliseconds from the start of the trial.
        duration_ms: how long the tool ran, in milliseconds.
    """

    value: object = None
    error_code: str = ""
    error_message: str = ""
    started_ms: float = 0.0
    duration_ms: float = 0.0


@light(frozen=True, slots=True)
class ExchangeError:
    """A failed exchange as a value.

    Its field names are keys of the stored step details, so they cannot be changed.

    Attributes:
        code: an error code that is listed in providers/data/outcomes.json.
        message: the error in words, from the endpoint or from Toolbench.
        status: the HTTP status; None without a response.
        infrastructure: whether the network, the provider or the host caused the error, and not the model.
        retryable: whether the same request may be sent again.
        tool_support: True if the cause is missing tool support: the endpoint says that this model or route cannot use
            tools.
        hint: a sentence that helps to understand the error; "" for none.
        generation: the text of the model, if the error quotes it; "" otherwise.
        named: places in the request that the error names in its fields, such as `tool_choice.type`.
    """

    code: str
    message: str
    status: int | None = None
    infrastructure: bool = True
    retryable: bool = False
    tool_support: bool = False
    hint: str = ""
    generation: str = ""
    named: tuple[str, ...] = ()


@light(frozen=True, slots=True)
class FailedExchange:
    """The driver's reply to an `Ask` whose exchange failed."""

    error: ExchangeError


class StopReason(StrEnum):
    """The reasons for which the driver ends a run early."""

    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    BUDGET = "budget"


@light(frozen=True, slots=True)
class StopRun:
    """The driver's reply that ends the run early."""

    reason: StopReason


LoopInput = Turn | FailedExchange | tuple[Outcome, ...] | StopRun
"""The driver's reply to a step.

The driver replies to `Ask` with a turn or a failed exchange, to `Execute` with one outcome per call, and to either with
`StopRun` if it ends the run early.
"""


@light(frozen=True, slots=True)
class ToolResult:
    """A call of a turn and its result.

    Attributes:
        arguments: the parsed arguments; None if they are too large or could not be parsed.
        parse_status: ok, invalid_json or too_large.
        envelope: the result before result transforms; if it was too large, the error in its place.
        content: the exact text that is sent back to the model.
        was_executed: whether the tool ran; a refused call does not run.
        schema_errors: the violations of the tool's schema for which the call was refused; () for none.
        is_output_replaced: whether the tool's output was too large, so that the model gets an error in its place.
        changes: the changes that result transforms made.
        duration_ms: how long the tool ran, in milliseconds; 0.0 for a refused call.
    """

    call: ToolCall
    arguments: JsonObject | None
    parse_status: str
    envelope: Envelope
    content: str
    was_executed: bool
    schema_errors: tuple[SchemaError, ...] = ()
    is_output_replaced: bool = False
    changes: tuple[TransformChange, ...] = ()
    duration_ms: float = 0.0


@light(frozen=True, slots=True)
class TurnRecord:
    """The record of one request and of what followed from it.

    Attributes:
        turn: the number of the turn, from 0. A turn with several requests has several records.
        answer: the model's answer; None if the exchange failed or the run was stopped before an answer.
        failure: the error of the exchange; None if it did not fail.
        results: the results of the calls, in call order.
    """

    turn: int
    request: Request
    answer: Turn | None
    failure: ExchangeError | None = None
    results: tuple[ToolResult, ...] = ()


class EndReason(StrEnum):
    """The reasons for which a run of the loop ends.

    FINAL is the only success. LENGTH is a final answer that was truncated at the token limit. The others are errors.
    The result has the turn records, the history and the usage in every case.
    """

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
"""The ends with a final answer, complete or truncated."""


@light(frozen=True, slots=True)
class LoopResult:
    """The result of a run of the loop.

    Attributes:
        final_text: the text of the answer without calls that ended the run; "" if no such answer ended it.
        history: all messages of the conversation without the system prompt, for the next run.
        turns: one record for each request, in order.
        usage: the sums over all answers.
        message: a sentence about the reason for the end; "" for FINAL.
        error: the error of the last exchange for PROVIDER_ERROR; None for other ends.
        failed_tools: sorted names of the tools whose last call failed, for TOOL_ERROR; () for other ends, and always if
            the policy tolerates failures.
        reprompt_count: the number of re-prompts that quote an error because a call could not run.
    """

    end: EndReason
    final_text: str
    history: tuple[Message, ...]
    turns: tuple[TurnRecord, ...]
    usage: Usage
    message: str = ""
    error: ExchangeError | None = None
    failed_tools: tuple[str, ...] = ()
    reprompt_count: int = 0


@light(frozen=True, slots=True)
class Event:
    """An event of the loop, for listeners; the driver adds the time.

    Attributes:
        type: the event's name in the case study, such as `final`; Toolbench adds `llm_delta` and `tool_not_executed`.
        turn: the number of the turn, from 0.
        data: the payload. It has no durations of requests, and `tool_call_end` also has the ToolResult as `result`.
    """

    type: str
    turn: int
    data: JsonObject = field(default_factory=dict)


EmitEvent = Callable[[Event], None]
OnDelta = Callable[[Delta], None]
