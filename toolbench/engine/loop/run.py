"""The tool loop: request an answer and run its calls until the model answers without calls.

The loop is a generator without I/O: it yields `Ask` and `Execute` steps and receives the reply to each by `send()` (see
`engine.events`). `StopRun` may be the reply to any step and ends the run; the result has everything that was recorded
before. Turns count from 0 over all messages of the user; a repeated request belongs to the same turn.
"""

from collections.abc import Callable, Generator, Iterator
from copy import deepcopy
from dataclasses import field, replace
from itertools import count
from typing import TypeAlias

from toolbench.engine.events import (
    ANSWERED_ENDS,
    Ask,
    EmitEvent,
    EndReason,
    ExchangeError,
    Execute,
    FailedExchange,
    LoopInput,
    LoopResult,
    OmittedParameter,
    Request,
    StopRun,
    ToolResult,
)
from toolbench.engine.light_dataclass import light
from toolbench.engine.loop.dispatch import DispatchedCall, build_tool_result, dispatch
from toolbench.engine.loop.event_emitter import EventEmitter
from toolbench.engine.loop.ids import list_call_ids
from toolbench.engine.loop.refused_answers import parse_refused_answer
from toolbench.engine.loop.run_state import FurtherMessage, RunState
from toolbench.engine.loop.turn import build_ask
from toolbench.engine.loop.turn_setup import TurnSetup, prepare_turns
from toolbench.engine.methods.instructions import build_reprompt
from toolbench.engine.policy.limits import is_parallel_allowed
from toolbench.engine.policy.optional_parameters import list_refused_parameters
from toolbench.engine.policy.settings import Policy
from toolbench.engine.strict_json import list_object_keys
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.engine.types import JsonObject, Message, ResultMessage, Turn
from toolbench.engine.visible_text import is_blank
from toolbench.engine.wire_formats.registry import choose_wire_format

MAX_REASON_LENGTH = 300  # characters of the error message that OmittedParameter.reason keeps
Loop: TypeAlias = Generator[Ask | Execute, LoopInput, LoopResult]


@light(frozen=True, slots=True)
class LoopPlan:
    """Model, policy, messages, tools and options of a run. The loop does not modify it.

    Attributes:
        system: text of the system message; blank for none.
        user_text: text of the first user message; a blank text adds none to the history.
        history: messages before `user_text` in OpenAI's format. A message without a role and a plain string are user
            messages.
        options: fields of the request body; they replace the policy's defaults, and its overrides replace them.
        seed: the seed sent with each request; None for none.
        is_streamed: whether answers are streamed.
        wire: name of the wire format, such as `chat`.
        further_messages: further user messages, each sent after an answer without calls; `max_turns` limits the turns
            of each message.
        omitted_parameters: parameters that the endpoint is known to refuse. They are left out from the first request on
            if the policy has `drop_refused_parameters`.
    """

    model: str
    policy: Policy
    system: str
    user_text: str
    history: tuple[Message | str, ...] = ()
    tools: ToolRegistry = field(default_factory=ToolRegistry)
    options: JsonObject = field(default_factory=dict)
    seed: int | None = None
    is_streamed: bool = False
    wire: str = "chat"
    further_messages: tuple[FurtherMessage, ...] = ()
    omitted_parameters: tuple[OmittedParameter, ...] = ()


def run_loop(plan: LoopPlan, emit: EmitEvent, *, is_brief: bool = False) -> Loop:
    """Return the generator that runs the loop.

    Args:
        plan: the plan.
        emit: called with each event; its exceptions are suppressed.
        is_brief: whether fewer events are emitted; see EventEmitter.

    Raises:
        PlanError: the plan cannot be run; raised before the first request only.
        UnknownTransformError: a transform or repair of the policy is unknown, in strict mode; raised before the first
            request only.
        TypeError: a step got a reply of a wrong type or with a wrong number of outcomes.
    """
    run = _LoopRun(plan, emit, is_brief=is_brief)
    has_tools = run.has_tools
    for turn in count():
        if run.is_turn_limit_reached(turn):
            break
        answer = yield from _ask_model(run, turn, has_tools)
        if isinstance(answer, LoopResult):
            return answer
        if answer.calls:
            stop_result = yield from _execute_calls(run, turn, answer)
            if stop_result:
                return stop_result
        elif answer.is_paused:
            continue
        elif run.should_reprompt_for_call(turn, answer):
            run.reprompt_for_call(turn, answer)
        elif run.should_reprompt_for_text(answer):
            has_tools = run.reprompt_for_text(turn)
        elif run.has_further_message:
            has_tools = run.add_further_message(turn)
        else:
            return run.finish(turn)
    return run.state.build_result(
        EndReason.MAX_TURNS_EXCEEDED, f"No final answer within {plan.policy.max_turns} turns."
    )


def _ask_model(run: "_LoopRun", turn: int, has_tools: bool) -> Generator[Ask | Execute, LoopInput, Turn | LoopResult]:
    """Yield requests until there is an answer or the run ends.

    In relaxed mode, a request with tools is repeated once without tools if the endpoint says that it cannot use them
    and the policy's `fallback_retry_count` is not 0. A request whose optional parameters were refused is repeated
    without them if the policy has `drop_refused_parameters`.

    Returns:
        The answer, or the result of the run if it ended with an error or `StopRun`.
    """
    retries_left = run.fallback_retries
    while True:
        ask = build_ask(
            run.setup,
            turn,
            run.state.messages,
            has_tools=has_tools,
            must_call=run.must_call,
            on_delta=run.emitter.build_delta_listener(turn),
        )
        ask = replace(
            ask,
            request=run.add_message_index(ask.request),
            parse_refused_answer=run.build_refused_answer_parser(has_tools=has_tools),
        )
        run.state.record_request(ask.request)
        run.emitter.emit_request_start(ask.request, len(run.state.messages), retries_left)
        reply = yield ask
        match reply:
            case Turn():
                run.state.record_answer(reply)
                run.emitter.emit_request_end(turn, reply, has_tools)
                return reply
            case FailedExchange(error):
                run.state.record_failure(error)
                run.emitter.emit_request_error(turn, error, has_tools)
                if run.omit_refused_parameters(error, ask.request):
                    continue
                if not (error.tool_support and has_tools and retries_left):
                    return run.state.build_result(EndReason.PROVIDER_ERROR, error.message, error)
            case StopRun():
                return run.state.build_stopped_result(reply)
            case _:
                raise TypeError(f"an Ask is answered by Turn, FailedExchange or StopRun, not {type(reply).__name__}")
        retries_left, has_tools = retries_left - 1, False
        run.emitter.emit_request_retry(turn, retries_left)


def _execute_calls(run: "_LoopRun", turn: int, answer: Turn) -> Generator[Ask | Execute, LoopInput, LoopResult | None]:
    """Yield the calls that may run and record all results in the order of the calls.

    Returns:
        The result of the run if `StopRun` was sent; then only refused calls have results. None otherwise.
    """
    policy = run.setup.policy
    dispatched_calls = [dispatch(call, run.setup.tools, policy) for call in answer.calls]
    for call in dispatched_calls:
        run.emitter.emit_call_start(turn, call)
    prepared_calls = tuple(call.prepared_call for call in dispatched_calls if call.prepared_call)
    execute = Execute(turn, prepared_calls, is_parallel=is_parallel_allowed(run.setup.options))
    reply = (yield execute) if prepared_calls else ()
    if isinstance(reply, StopRun):
        refused_calls = [call for call in dispatched_calls if call.refusal]
        run.add_results(turn, [(call, build_tool_result(call, None, policy)) for call in refused_calls])
        return run.state.build_stopped_result(reply)
    if not isinstance(reply, tuple) or len(reply) != len(prepared_calls):
        raise TypeError(f"{len(prepared_calls)} calls need as many outcomes")
    outcomes = iter(reply)
    results = [
        build_tool_result(call, next(outcomes) if call.prepared_call else None, policy) for call in dispatched_calls
    ]
    run.add_results(turn, list(zip(dispatched_calls, results, strict=True)))
    return None


class _LoopRun:
    """One run of the loop: its setup, its state and its events."""

    def __init__(self, plan: LoopPlan, emit: EmitEvent, *, is_brief: bool) -> None:
        # The setup for `user_text`, then one for each further message.
        self._setups = tuple(_prepare_setup(plan, tools) for tools in _list_offered_tools(plan))
        self.setup = self._setups[0]
        self._further_messages = plan.further_messages
        self._message_index = 0  # of the current user message; 0 for `user_text`
        self._unsent_text = ""  # text of the current further user message until a request carries it
        self._first_turn = 0  # of the current user message
        history = self.setup.call_method.render_history([_to_message(item) for item in plan.history])
        self.state = RunState(plan.policy, history)
        self.state.add_user_message(plan.user_text)
        self.emitter = EventEmitter(self.setup, emit, is_brief=is_brief)
        self._emit_event, self._is_brief = emit, is_brief
        self._has_reprompted_for_text = False
        self._has_called = False  # whether the model made calls since the current user message

    @property
    def has_tools(self) -> bool:
        """Whether tools are offered for the current user message."""
        return bool(self.setup.tools.definitions)

    def is_turn_limit_reached(self, turn: int) -> bool:
        """Return whether the current user message has used `max_turns` turns before the turn `turn`."""
        return turn - self._first_turn >= self.setup.policy.max_turns

    @property
    def has_further_message(self) -> bool:
        """Whether another message of the user follows."""
        return self._message_index < len(self._further_messages)

    def add_further_message(self, turn: int) -> bool:
        """Add the user's next message; return whether the next request has tools."""
        message = self._further_messages[self._message_index]
        self._message_index, self._first_turn = self._message_index + 1, turn + 1
        self.setup = self._setups[self._message_index]
        self._has_reprompted_for_text = self._has_called = False
        self._unsent_text = message.text
        self.state.add_user_message(message.text)
        self.emitter = EventEmitter(self.setup, self._emit_event, is_brief=self._is_brief)
        return self.has_tools

    def add_message_index(self, request: Request) -> Request:
        """Return the request with the index of the user message that it answers.

        The first request after a further user message also gets the text of that message.
        """
        if not self._message_index:
            return request
        user_message, self._unsent_text = self._unsent_text, ""
        return replace(request, message_index=self._message_index, user_message=user_message)

    def build_refused_answer_parser(self, *, has_tools: bool) -> Callable[[str], Turn | str]:
        """Return a function that parses the answer that a server quotes in an error; see parse_refused_answer."""

        def parse_quoted_answer(text: str) -> Turn | str:
            taken_ids = frozenset(list_call_ids(self.state.messages))
            return parse_refused_answer(self.setup, text, has_tools=has_tools, taken_ids=taken_ids)

        return parse_quoted_answer

    def omit_refused_parameters(self, error: ExchangeError, request: Request) -> bool:
        """Leave the parameters that the endpoint refused out of all further requests.

        Returns:
            True if the request is to be repeated: the policy has `drop_refused_parameters`, and the error names an
            optional parameter of the request.
        """
        if not self.setup.policy.drop_refused_parameters:
            return False
        refused_names = list_refused_parameters(error, list_object_keys(request.body))
        omitted_parameters = [
            OmittedParameter(name, error.message[:MAX_REASON_LENGTH], was_omitted_from_start=False)
            for name in refused_names
        ]
        self._setups = tuple(setup.omit_parameters(omitted_parameters) for setup in self._setups)
        self.setup = self._setups[self._message_index]
        return bool(omitted_parameters)

    @property
    def must_call(self) -> bool:
        """Whether the tool use mode is enforced and the run has no call yet."""
        return self.setup.policy.tool_use_mode == "enforced" and not self.state.has_calls

    @property
    def fallback_retries(self) -> int:
        """The policy's `fallback_retry_count`; 0 unless the tool use mode is relaxed."""
        policy = self.setup.policy
        return policy.fallback_retry_count if policy.tool_use_mode == "relaxed" else 0

    def should_reprompt_for_call(self, turn: int, answer: Turn) -> bool:
        """Return whether to re-prompt because a call could not run.

        The loop does so only if the policy has `repair_request`, at most once per run, and not after the last turn that
        `max_turns` allows.
        """
        policy = self.setup.policy
        may_reprompt = (
            policy.repair_request and not self.state.reprompt_count and not self.is_turn_limit_reached(turn + 1)
        )
        return may_reprompt and answer.has_unexecuted_call and self.has_tools

    def reprompt_for_call(self, turn: int, answer: Turn) -> None:
        """Add the user message that quotes the error, and emit `tool_not_executed`."""
        self.state.reprompt_count += 1
        self.state.add_user_message(
            build_reprompt(self.setup.call_method.method, answer.unexecuted_reason, self.setup.tools_json)
        )
        self.emitter.emit_tool_not_executed(turn, answer)

    def should_reprompt_for_text(self, answer: Turn) -> bool:
        """Return whether to re-prompt for a blank answer after calls.

        The loop does so only if the policy has `fix_empty_final`, and at most once for each user message.
        """
        policy = self.setup.policy
        may_reprompt = policy.fix_empty_final and not self._has_reprompted_for_text
        return may_reprompt and self._has_called and is_blank(answer.text)

    def reprompt_for_text(self, turn: int) -> bool:
        """Add the user message that asks for an answer and emit `fix_empty_final`.

        Returns:
            Whether the next request has tools.
        """
        policy = self.setup.policy
        self._has_reprompted_for_text = True
        self.state.add_user_message(policy.fix_empty_final_user_text)
        self.emitter.emit_fix_empty_final(turn)
        return self.has_tools and not policy.fix_empty_final_disable_tools

    def add_results(self, turn: int, call_results: list[tuple[DispatchedCall, ToolResult]]) -> None:
        """Record results, add them to the conversation and emit `tool_call_end` for each."""
        self._has_called = True
        self.state.record_results(
            tuple(result for _, result in call_results), [call.tool_name for call, _ in call_results]
        )
        for _, result in call_results:
            self.state.messages.extend(self.setup.call_method.build_result_messages(result.call, result.content))
            self.emitter.emit_call_end(turn, result)

    def finish(self, turn: int) -> LoopResult:
        """Return the result after an answer without calls; emit `final` if its end is FINAL or LENGTH."""
        result = self.state.build_final_result()
        if result.end in ANSWERED_ENDS:
            self.emitter.emit_final(turn, self.state, result.final_text)
        return result


def _list_offered_tools(plan: LoopPlan) -> Iterator[ToolRegistry]:
    """Yield the tools that are offered from each user message on, in order."""
    tools = plan.tools
    yield tools
    for message in plan.further_messages:
        tools = ToolRegistry((*tools.definitions, *message.tools)) if message.tools else tools
        yield tools


def _prepare_setup(plan: LoopPlan, tools: ToolRegistry) -> TurnSetup:
    setup = prepare_turns(
        plan.model, plan.policy, system=plan.system, tools=tools, options=plan.options, seed=plan.seed
    )
    known_parameters = plan.omitted_parameters if plan.policy.drop_refused_parameters else ()
    return replace(
        setup.omit_parameters(known_parameters),
        is_streamed=plan.is_streamed,
        wire_format=choose_wire_format(plan.policy, plan.wire),
        history_call_ids=frozenset(list_call_ids(item for item in plan.history if isinstance(item, dict))),
    )


def _to_message(message_or_text: Message | str) -> Message:
    """Return a copy of a message, or a text as a user message.

    A message without a role becomes a user message. A `ResultMessage` keeps its class.
    """
    if isinstance(message_or_text, ResultMessage):
        return deepcopy(message_or_text)
    return (
        {"role": "user", "content": message_or_text}
        if isinstance(message_or_text, str)
        else {"role": "user", **deepcopy(message_or_text)}
    )
