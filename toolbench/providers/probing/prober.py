"""Prober that sends a probe's requests and numbers every exchange.

It uses the same client and loop as a trial.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.events import ExchangeError, LoopResult, Request
from toolbench.engine.loop.run import LoopPlan
from toolbench.engine.policy.presets import get_preset
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.strict_json import encode_json
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.types import JsonObject, Message, Turn
from toolbench.engine.wire_formats.chat_answer import ChatAnswer
from toolbench.engine.wire_formats.parse_answer import get_message_text
from toolbench.engine.wire_formats.registry import CHAT, WireFormat, get_wire_format
from toolbench.providers.driver.cancellation import CancellationToken
from toolbench.providers.driver.drive import RunContext, drive
from toolbench.providers.driver.step_log import Attempt, StepLog
from toolbench.providers.driver.step_records import ExchangeStep, ToolStep
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.client import HttpClient
from toolbench.providers.http.error_body import parse_json
from toolbench.providers.http.error_codes import classify_unreadable
from toolbench.providers.http.exchange import Exchange

ECHO_TOOL = ToolDefinition(
    "probe_echo",
    "Gives back the value it is given.",
    {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]},
)
PING_TOOL = ToolDefinition("probe_ping", "Says that it is there.", {"type": "object", "properties": {}})
MESSAGES_WIRE = "anthropic"
DEFAULT_LIMIT_NAME = "max_tokens"  # newer models require another name
MAX_ANSWER_TOKENS = 512  # reasoning models think before they call
MAX_WAIT_SECONDS = 5.0  # seconds between two attempts
MAX_ATTEMPTS = 2

AnyStep = ExchangeStep | ToolStep


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """One conversation with the endpoint.

    Attributes:
        policy: patch on top of the probe's own policy.
        options: options of the request; a value of None removes the probe's own option.
    """

    system: str
    user: str
    tools: tuple[ToolDefinition, ...] = ()
    history: tuple[Message, ...] = ()
    policy: JsonObject = field(default_factory=dict)
    options: JsonObject = field(default_factory=dict)
    stream: bool = False
    turns: int = 1
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Result of a probe request: how the conversation ended, and its exchanges in order."""

    ended: LoopResult
    exchanges: tuple[ExchangeStep, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the exchanges within the probe."""
        return tuple(step.ordinal for step in self.exchanges)

    @property
    def turn(self) -> Turn | None:
        """First answer; None when there is none."""
        return self.ended.turns[0].answer if self.ended.turns else None

    @property
    def error(self) -> ExchangeError | None:
        """Error in place of the first answer; None when there is an answer."""
        return self.ended.turns[0].failure if self.ended.turns else self.ended.error

    def find_call_arguments(self, name: str) -> JsonObject | None:
        """Return the arguments of the first executed call of this tool, as dispatched; None without one."""
        results = self.ended.turns[0].results if self.ended.turns else ()
        return next((result.arguments for result in results if result.call.name == name and result.executed), None)


@dataclass(frozen=True, slots=True)
class PostResult:
    """Result of a request that is sent without the loop."""

    number: int
    status: int | None
    error: ExchangeError | None
    turn: Turn | None
    payload: Any

    @property
    def text(self) -> str:
        """Text of the answer, "" without one."""
        return self.turn.text if self.turn else ""

    @property
    def refused(self) -> bool:
        """Whether the endpoint refused the request itself: the error is no infrastructure error."""
        return self.error is not None and not self.error.infrastructure


@dataclass(slots=True)
class Prober:
    """Sender of a probe's requests, and gate and recorder for them.

    Attributes:
        on_exchange: called with the check's name and each exchange.
        wait_for_permit: awaited before every request; an exception from it ends the probe.
        clock: returns seconds.
        word: the word that the endpoint has to repeat.
        check: name of the check that is running.
        limit_name: name under which the endpoint takes its token limit.
        exchanges: all exchanges so far, in order.
    """

    endpoint: Endpoint
    client: HttpClient
    on_exchange: Callable[[str, ExchangeStep], None]
    wait_for_permit: Callable[[], Awaitable[None]]
    clock: Callable[[], float]
    word: str
    check: str = ""
    limit_name: str = DEFAULT_LIMIT_NAME
    exchanges: list[ExchangeStep] = field(default_factory=list)

    async def ask(self, wish: ProbeRequest) -> ProbeResult:
        """Send a request through the loop.

        An endpoint that requires the newer name of the token limit is asked again with that name.
        """
        result = await self._ask(wish)
        if result.error and "max_completion_tokens" in result.error.message and self.limit_name == DEFAULT_LIMIT_NAME:
            self.limit_name = "max_completion_tokens"
            result = await self._ask(wish)
        return result

    async def _ask(self, wish: ProbeRequest) -> ProbeResult:
        before = len(self.exchanges)
        endpoint = replace(self.endpoint, max_attempts=MAX_ATTEMPTS)
        context = RunContext(endpoint, self.client, _run_tool, self, self, self.clock, CancellationToken())
        return ProbeResult(await drive(self._build_plan(wish), context), tuple(self.exchanges[before:]))

    def _build_plan(self, wish: ProbeRequest) -> LoopPlan:
        options = {self.limit_name: MAX_ANSWER_TOKENS, "temperature": 0, **wish.options}
        policy_patch: JsonObject = {"max_turns": wish.turns, "fix_empty_final": False}
        layers = [("normalising", get_preset("default_tool_calling")), ("probe", policy_patch), ("check", wish.policy)]
        return LoopPlan(
            model=self.endpoint.model,
            policy=resolve_policy(layers).policy,
            system=wish.system,
            user_text=wish.user,
            history=wish.history,
            tools=ToolRegistry(wish.tools),
            options={name: value for name, value in options.items() if value is not None},
            seed=wish.seed,
            stream=wish.stream,
            wire=self.endpoint.wire,
        )

    @property
    def uses_messages(self) -> bool:
        """Whether the endpoint uses Anthropic's Messages format."""
        return self.endpoint.wire == MESSAGES_WIRE

    @property
    def uses_chat(self) -> bool:
        """Whether the endpoint uses the format of OpenAI's chat completions."""
        return self.endpoint.wire == CHAT.name

    @property
    def wire(self) -> WireFormat:
        """Wire format of the endpoint."""
        return get_wire_format(self.endpoint.wire)

    async def post(self, body: JsonObject) -> PostResult:
        """Send one request without the loop and without retries.

        `body` has the form of a chat completion request and is encoded in the endpoint's wire format.
        """
        encoded, _ = self.wire.encode({"model": self.endpoint.model, **body})
        return await self._post(encoded, self.wire.path)

    async def post_raw(self, body: JsonObject, path: str = "") -> PostResult:
        """Send one request whose body is not encoded by the wire format.

        `path` replaces the wire format's path; "" keeps it.
        """
        return await self._post({"model": self.endpoint.model, **body}, path or self.wire.path)

    async def _post(self, body: JsonObject, path: str) -> PostResult:
        await self.reserve()
        log = StepLog(self, self.clock)
        exchange = self.client.build_exchange(self.endpoint, path, encode_json(body))
        await self.client.send(exchange)
        error, turn = exchange.find_error(), None
        if error is None and path == self.wire.path:
            turn, error = _parse_response(exchange, self.wire)
        request = Request(turn=0, path=path, body=exchange.request_body, tools_sent="tools" in body)
        read = log.record_exchange(Attempt(request, 1, 0.0), exchange, error or turn or Turn({}, ""), {})
        if isinstance(read, Turn):
            turn = read if turn else None
        else:
            error = read
        return PostResult(len(self.exchanges), exchange.status, error, turn, parse_json(exchange.body))

    def record(self, step: AnyStep) -> None:
        """Give an exchange its number within the whole probe and pass it on; tool steps are ignored."""
        if isinstance(step, ExchangeStep):
            numbered = replace(step, ordinal=len(self.exchanges) + 1)
            self.exchanges.append(numbered)
            self.on_exchange(self.check, numbered)

    async def reserve(self) -> None:
        """Wait until the next request is permitted."""
        await self.wait_for_permit()

    async def back_off(self, seconds: float) -> None:
        """Wait before the next attempt, at most `MAX_WAIT_SECONDS`."""
        await asyncio.sleep(min(seconds, MAX_WAIT_SECONDS))


def _parse_response(exchange: Exchange, wire: WireFormat) -> tuple[Turn | None, ExchangeError | None]:
    decoder = wire.decoder(_build_turn, lambda delta: None, stream=False)
    decoder.feed(exchange.body)
    try:
        return decoder.close(), None
    except MalformedAnswerError as error:
        return None, classify_unreadable(exchange.status, exchange.body, str(error))


def _build_turn(answer: ChatAnswer) -> Turn:
    return Turn(answer.message, get_message_text(answer.message), finish_reason=answer.finish_reason)


def _run_tool(name: str, arguments: JsonObject, call_id: str) -> object:
    return {"value": arguments.get("value", "pong")}
