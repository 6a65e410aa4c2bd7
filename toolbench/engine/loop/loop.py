"""The tool loop: ask, run the calls, ask again, until the model answers without calls.

A generator without I/O: it yields what it needs and is sent the outcome (see events). `Stop` may be sent at any time
and ends it with everything kept. Turns count from 0, on over all of the user's messages; a retried request belongs to
the same turn."""

from collections.abc import Callable, Generator, Iterator
from copy import deepcopy
from dataclasses import field, replace
from itertools import count
from typing import TypeAlias

from toolbench.engine.asking.prompting import again
from toolbench.engine.events import (
    ANSWERS,
    Ask,
    Emit,
    End,
    Ended,
    ExchangeError,
    Execute,
    Failed,
    LeftOut,
    Request,
    Sent,
    Stop,
    ToolResult,
)
from toolbench.engine.json_text import keys_of
from toolbench.engine.loop.dispatch import Dispatched, dispatch, result_of
from toolbench.engine.loop.ids import ids_in
from toolbench.engine.loop.ledger import Ledger
from toolbench.engine.loop.narration import Narration
from toolbench.engine.loop.preparing import TurnSetup, prepare_turns
from toolbench.engine.loop.salvaging import read_refused
from toolbench.engine.loop.saying import FurtherMessage
from toolbench.engine.loop.turn import ask_turn
from toolbench.engine.messages import JsonObject, Message, ToldResult, Turn
from toolbench.engine.policy.limits import may_run_side_by_side
from toolbench.engine.policy.optional_parameters import refused_parameters
from toolbench.engine.policy.policy import Policy
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.engine.values import light
from toolbench.engine.visible_text import is_blank
from toolbench.engine.wires.wires import wire_for

WHY_LENGTH = 300  # characters of a refusal that are kept with what is left out for it
Loop: TypeAlias = Generator[Ask | Execute, Sent, Ended]


@light(frozen=True, slots=True)
class LoopPlan:
    """Everything a run depends on. `history` comes before `user_text`: messages in OpenAI's shape, role `user` where
    none is given; a bare text is a user message. `options` go into the request body, over the policy's defaults and
    under its overrides. `further` is what the user says next, each after an answer without calls; `max_turns` holds for
    each message. `left_out` are parameters that this endpoint is known to refuse, where the policy drops those. With
    `stream` answers are asked for as they are written. `wire` names how requests travel (see
    wires). Nothing in here is changed."""

    model: str
    policy: Policy
    system: str
    user_text: str
    history: tuple[Message | str, ...] = ()
    tools: ToolRegistry = field(default_factory=ToolRegistry)
    options: JsonObject = field(default_factory=dict)
    seed: int | None = None
    stream: bool = False
    wire: str = "chat"
    further: tuple[FurtherMessage, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def run_loop(plan: LoopPlan, emit: Emit, *, brief: bool = False) -> Loop:
    """Before the first request it raises PlanError or, in strict mode, UnknownTransform; later nothing of its own. An
    exception of `emit` is swallowed; `brief` as in Narration."""
    run = _Run(plan, emit, brief=brief)
    with_tools = run.offers_tools
    for turn in count():
        if run.spent(turn):
            break
        answer = yield from _ask(run, turn, with_tools)
        if isinstance(answer, Ended):
            return answer
        if answer.calls:
            stopped = yield from _execute(run, turn, answer)
            if stopped:
                return stopped
        elif answer.continues:
            continue
        elif run.wants_call_again(turn, answer):
            run.ask_for_call_again(turn, answer)
        elif run.wants_final_text(answer):
            with_tools = run.ask_for_final_text(turn)
        elif run.has_more_to_say:
            with_tools = run.say_more(turn)
        else:
            return run.finish(turn)
    return run.ledger.ended(End.MAX_TURNS_EXCEEDED, f"No final answer within {plan.policy.max_turns} turns.")


def _ask(run: "_Run", turn: int, with_tools: bool) -> Generator[Ask | Execute, Sent, Turn | Ended]:
    """One answer. Where the endpoint says that it cannot use tools, the turn is asked again without them."""
    retries = run.fallback_retries
    while True:
        ask = ask_turn(
            run.setup,
            turn,
            run.ledger.messages,
            with_tools=with_tools,
            must_call=run.must_call,
            heard=run.narrate.hear(turn),
        )
        ask = replace(ask, request=run.marked(ask.request), read_refused=run.reader_of_refused(with_tools=with_tools))
        run.ledger.asked(ask.request)
        run.narrate.request_start(ask.request, len(run.ledger.messages), retries)
        sent = yield ask
        match sent:
            case Turn():
                run.ledger.answered(sent)
                run.narrate.request_end(turn, sent, with_tools)
                return sent
            case Failed(error):
                run.ledger.failed(error)
                run.narrate.request_error(turn, error, with_tools)
                if run.leave_out_refused(error, ask.request):
                    continue
                if not (error.tool_support and with_tools and retries):
                    return run.ledger.ended(End.PROVIDER_ERROR, error.message, error)
            case Stop():
                return run.ledger.stopped(sent)
            case _:
                raise TypeError(f"an Ask is answered by Turn, Failed or Stop, not {type(sent).__name__}")
        retries, with_tools = retries - 1, False
        run.narrate.request_retry(turn, retries)


def _execute(run: "_Run", turn: int, answer: Turn) -> Generator[Ask | Execute, Sent, Ended | None]:
    """Runs the calls that may run and gives the model every call's result, in call order."""
    policy = run.setup.policy
    calls = [dispatch(call, run.setup.tools, policy) for call in answer.calls]
    for call in calls:
        run.narrate.call_start(turn, call)
    prepared = tuple(call.prepared for call in calls if call.prepared)
    execute = Execute(turn, prepared, side_by_side=may_run_side_by_side(run.setup.options))
    sent = (yield execute) if prepared else ()
    if isinstance(sent, Stop):
        refused = [call for call in calls if call.refused]
        run.take(turn, [(call, result_of(call, None, policy)) for call in refused])
        return run.ledger.stopped(sent)
    if not isinstance(sent, tuple) or len(sent) != len(prepared):
        raise TypeError(f"{len(prepared)} calls need as many outcomes")
    outcomes = iter(sent)
    run.take(turn, [(call, result_of(call, next(outcomes) if call.prepared else None, policy)) for call in calls])
    return None


class _Run:
    """One run of the loop: its setup, its ledger and its narration."""

    def __init__(self, plan: LoopPlan, emit: Emit, *, brief: bool) -> None:
        self._setups = tuple(_setup(plan, tools) for tools in _offered(plan))
        self.setup = self._setups[0]
        self._further = plan.further
        self._message = 0
        self._unsent = ""  # what the user said since the last request
        self._began = 0  # the turn that the message came with
        history = self.setup.asking.render_history([_as_message(item) for item in plan.history])
        self.ledger = Ledger(plan.policy, history)
        self.ledger.say(plan.user_text)
        self.narrate = Narration(self.setup, emit, brief=brief)
        self._emit, self._brief = emit, brief
        self._asked_for_final_text = False
        self._called = False  # since the user last spoke

    @property
    def offers_tools(self) -> bool:
        return bool(self.setup.tools.definitions)

    def spent(self, turn: int) -> bool:
        """Whether the message has had all its turns."""
        return turn - self._began >= self.setup.policy.max_turns

    @property
    def has_more_to_say(self) -> bool:
        return self._message < len(self._further)

    def say_more(self, turn: int) -> bool:
        """Adds the user's next message; says whether the next request carries tools."""
        said = self._further[self._message]
        self._message, self._began = self._message + 1, turn + 1
        self.setup = self._setups[self._message]
        self._asked_for_final_text = self._called = False
        self._unsent = said.text
        self.ledger.say(said.text)
        self.narrate = Narration(self.setup, self._emit, brief=self._brief)
        return self.offers_tools

    def marked(self, request: Request) -> Request:
        """The request with the message that it belongs to, the first one with its text."""
        if not self._message:
            return request
        said, self._unsent = self._unsent, ""
        return replace(request, message=self._message, said=said)

    def reader_of_refused(self, *, with_tools: bool) -> Callable[[str], Turn | str]:
        def read(text: str) -> Turn | str:
            taken = frozenset(ids_in(self.ledger.messages))
            return read_refused(self.setup, text, with_tools=with_tools, taken=taken)

        return read

    def leave_out_refused(self, error: ExchangeError, request: Request) -> bool:
        """Leaves out of all further requests what the endpoint refused of this one; False where the policy does not
        want that or the error names nothing that can be left out."""
        if not self.setup.policy.drop_refused_parameters:
            return False
        found = refused_parameters(error, keys_of(request.body))
        learnt = [LeftOut(name, error.message[:WHY_LENGTH], known=False) for name in found]
        self._setups = tuple(setup.without(learnt) for setup in self._setups)
        self.setup = self._setups[self._message]
        return bool(learnt)

    @property
    def must_call(self) -> bool:
        return self.setup.policy.tool_use_mode == "enforced" and not self.ledger.any_calls

    @property
    def fallback_retries(self) -> int:
        policy = self.setup.policy
        return policy.fallback_retry_count if policy.tool_use_mode == "relaxed" else 0

    def wants_call_again(self, turn: int, answer: Turn) -> bool:
        """Whether a call that could not be run is worth one more request; once per run, and the answer is kept."""
        policy = self.setup.policy
        wanted = policy.repair_request and not self.ledger.asked_again and not self.spent(turn + 1)
        return wanted and answer.not_executed and self.offers_tools

    def ask_for_call_again(self, turn: int, answer: Turn) -> None:
        """Adds the user's message, which quotes the error."""
        self.ledger.asked_again += 1
        self.ledger.say(again(self.setup.asking.method, answer.not_run_because, self.setup.tools_json))
        self.narrate.ask_again(turn, answer)

    def wants_final_text(self, answer: Turn) -> bool:
        """Whether a blank answer after tool calls is worth one more request; each message of the user's for itself."""
        policy = self.setup.policy
        wanted = policy.fix_empty_final and not self._asked_for_final_text
        return wanted and self._called and is_blank(answer.text)

    def ask_for_final_text(self, turn: int) -> bool:
        """Adds the user's message; says whether the next request carries tools."""
        policy = self.setup.policy
        self._asked_for_final_text = True
        self.ledger.say(policy.fix_empty_final_user_text)
        self.narrate.fix_empty_final(turn)
        return self.offers_tools and not policy.fix_empty_final_disable_tools

    def take(self, turn: int, pairs: list[tuple[Dispatched, ToolResult]]) -> None:
        """Writes results down and gives them to the model."""
        self._called = True
        self.ledger.resulted(tuple(result for _, result in pairs), [call.tool_name for call, _ in pairs])
        for _, result in pairs:
            self.ledger.messages.extend(self.setup.asking.result_messages(result.call, result.content))
            self.narrate.call_end(turn, result)

    def finish(self, turn: int) -> Ended:
        ended = self.ledger.final()
        if ended.end in ANSWERS:
            self.narrate.final(turn, self.ledger, ended.final_text)
        return ended


def _offered(plan: LoopPlan) -> Iterator[ToolRegistry]:
    """The tools that go with each of the user's messages."""
    tools = plan.tools
    yield tools
    for said in plan.further:
        tools = ToolRegistry((*tools.definitions, *said.tools)) if said.tools else tools
        yield tools


def _setup(plan: LoopPlan, tools: ToolRegistry) -> TurnSetup:
    setup = prepare_turns(
        plan.model, plan.policy, system=plan.system, tools=tools, options=plan.options, seed=plan.seed
    )
    known = plan.left_out if plan.policy.drop_refused_parameters else ()
    return replace(setup.without(known), stream=plan.stream, wire=wire_for(plan.policy, plan.wire))


def _as_message(item: Message | str) -> Message:
    if isinstance(item, ToldResult):
        return deepcopy(item)
    return {"role": "user", "content": item} if isinstance(item, str) else {"role": "user", **deepcopy(item)}
