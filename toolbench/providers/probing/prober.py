"""Sender of a probe's requests, which uses the same HTTP client and loop as a trial."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.events import ExchangeError, LoopResult, Request, TurnRecord
from toolbench.engine.loop.run import LoopPlan
from toolbench.engine.policy.optional_parameters import list_refused_parameters
from toolbench.engine.policy.presets import get_preset
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.strict_json import encode_json, list_object_keys
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
DEFAULT_LIMIT_NAME, NEWER_LIMIT_NAME = "max_tokens", "max_completion_tokens"  # newer models require the second name
MAX_ANSWER_TOKENS = 512  # reasoning models think before they call
MAX_WAIT_SECONDS = 5.0  # between two attempts
MAX_ATTEMPTS = 2

AnyStep = ExchangeStep | ToolStep


class ProbeLimitReachedError(Exception):
    """Error for a request that exceeds the limit of a probe and is therefore not sent."""


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """One question to the endpoint, which may take several turns.

    Attributes:
        system: the system prompt, "" for none.
        user: the user message.
        tools: the tools on offer.
        history: messages between the system prompt and the user message.
        policy: settings that replace those of the probe's policy.
        options: options of the request; a value of None removes the probe's option of that name.
        stream: whether to request a streamed answer.
        turns: the maximum number of turns.
        seed: the seed to send, None for none.
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
    """Result of a probe request: the loop's result, and the exchanges in order."""

    loop_result: LoopResult
    exchanges: tuple[ExchangeStep, ...]

    @property
    def exchange_numbers(self) -> tuple[int, ...]:
        """Numbers of the exchanges, counted from 1 within the probe."""
        return tuple(step.ordinal for step in self.exchanges)

    @property
    def first_record(self) -> TurnRecord | None:
        """First record that is not the refusal of the temperature, or the last one; None if there is none."""
        records = self.loop_result.turns
        answered = (record for record in records if not _is_temperature_refused(record))
        return next(answered, records[-1] if records else None)

    @property
    def turn(self) -> Turn | None:
        """First answer, or None if there is none."""
        return self.first_record.answer if self.first_record else None

    @property
    def error(self) -> ExchangeError | None:
        """Error in place of the first answer, or None."""
        return self.first_record.failure if self.first_record else self.loop_result.error

    def find_call_arguments(self, name: str) -> JsonObject | None:
        """Return the arguments of the first call of this tool that was run in the first turn.

        Returns:
            The arguments after repairs; None if no call of the tool was run.
        """
        results = self.first_record.results if self.first_record else ()
        return next((result.arguments for result in results if result.call.name == name and result.was_executed), None)


@dataclass(frozen=True, slots=True)
class PostResult:
    """Result of a request that is sent without the loop.

    Attributes:
        exchange_number: number of the exchange, counted from 1 within the probe.
        status: the HTTP status, None if no response head arrived.
        error: the error, or None.
        turn: the decoded answer; None with an error, or if the path is not that of the endpoint's wire format.
        payload: JSON of the response's body, None if it is not JSON.
    """

    exchange_number: int
    status: int | None
    error: ExchangeError | None
    turn: Turn | None
    payload: Any

    @property
    def text(self) -> str:
        """Text of the answer, "" if there is no answer."""
        return self.turn.text if self.turn else ""

    @property
    def is_refused(self) -> bool:
        """Whether the endpoint refused the request, which is every error but an infrastructure error."""
        return self.error is not None and not self.error.infrastructure


@dataclass(slots=True)
class Prober:
    """Sender of a probe's requests. It is also the gate and the recorder that the driver uses.

    Attributes:
        endpoint: the endpoint to probe.
        client: an open HTTP client.
        on_exchange: called with the slug of the check and each exchange.
        wait_for_permit: awaited before every request; an exception from it ends the probe.
        clock: returns seconds.
        word: the word that the model has to repeat in its call.
        check_slug: slug of the running check; the caller sets it.
        limit_name: name of the parameter for the token limit.
        omits_temperature: whether the endpoint has refused a temperature.
        exchanges: all exchanges so far, in order.
        max_requests: number of requests that the probe may send, with retries; None for no limit.
        sent_requests: number of requests so far, with retries and the counted ones of earlier executions.
    """

    endpoint: Endpoint
    client: HttpClient
    on_exchange: Callable[[str, ExchangeStep], None]
    wait_for_permit: Callable[[], Awaitable[None]]
    clock: Callable[[], float]
    word: str
    check_slug: str = ""
    limit_name: str = DEFAULT_LIMIT_NAME
    omits_temperature: bool = False
    exchanges: list[ExchangeStep] = field(default_factory=list)
    max_requests: int | None = None
    sent_requests: int = 0

    async def ask(self, request: ProbeRequest) -> ProbeResult:
        """Send a request through the loop.

        If an error names the newer parameter for the token limit, send the request again with that parameter. If the
        temperature is refused, later requests have none unless they set it.
        """
        result = await self._ask(request)
        is_newer_name_unused = self.limit_name == DEFAULT_LIMIT_NAME and NEWER_LIMIT_NAME not in request.options
        if is_newer_name_unused and result.error and NEWER_LIMIT_NAME in result.error.message:
            self.limit_name = NEWER_LIMIT_NAME
            result = await self._ask(request)
        return result

    async def _ask(self, request: ProbeRequest) -> ProbeResult:
        before = len(self.exchanges)
        endpoint = replace(self.endpoint, max_attempts=MAX_ATTEMPTS)
        context = RunContext(endpoint, self.client, _run_tool, self, self, self.clock, CancellationToken())
        result = ProbeResult(await drive(self._build_plan(request), context), tuple(self.exchanges[before:]))
        self.omits_temperature |= any(map(_is_temperature_refused, result.loop_result.turns))
        return result

    def _build_plan(self, request: ProbeRequest) -> LoopPlan:
        options = {**self.default_options, **request.options}
        policy_patch: JsonObject = {"max_turns": request.turns, "fix_empty_final": False}
        layers = [
            ("normalising", get_preset("default_tool_calling")),
            ("probe", policy_patch),
            ("check", request.policy),
        ]
        return LoopPlan(
            model=self.endpoint.model,
            policy=resolve_policy(layers).policy,
            system=request.system,
            user_text=request.user,
            history=request.history,
            tools=ToolRegistry(request.tools),
            options={name: value for name, value in options.items() if value is not None},
            seed=request.seed,
            is_streamed=request.stream,
            wire=self.endpoint.wire,
        )

    @property
    def default_options(self) -> JsonObject:
        """Options of requests that do not set them: the token limit and, unless it is refused, temperature 0."""
        temperature: JsonObject = {} if self.omits_temperature else {"temperature": 0}
        return {self.limit_name: MAX_ANSWER_TOKENS, **temperature}

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

        Args:
            body: body of a chat completion request without the model; it is encoded in the endpoint's wire format.
        """
        encoded, _ = self.wire.encode({"model": self.endpoint.model, **body})
        return await self._post(encoded, self.wire.path)

    async def post_raw(self, body: JsonObject, path: str = "") -> PostResult:
        """Send one request without the loop and without retries; its body is not encoded in the wire format.

        Args:
            body: the body without the model, which is added.
            path: path after the API prefix, or with a leading slash after the base URL; "" for that of the wire format.
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
        request = Request(turn=0, path=path, body=exchange.request_body, has_tools="tools" in body)
        answer = error or turn or Turn({}, "")  # an empty turn for an answer that was not decoded
        masked_answer = log.record_exchange(Attempt(request, 1, 0.0), exchange, answer, {})
        if isinstance(masked_answer, Turn):
            turn = masked_answer if turn else None
        else:
            error = masked_answer
        return PostResult(len(self.exchanges), exchange.status, error, turn, parse_json(exchange.body))

    def record(self, step: AnyStep) -> None:
        """Add an exchange with its number within the whole probe, and report it; ignore tool steps."""
        if isinstance(step, ExchangeStep):
            exchange = replace(step, ordinal=len(self.exchanges) + 1)
            self.exchanges.append(exchange)
            self.on_exchange(self.check_slug, exchange)

    async def reserve(self) -> None:
        """Wait until the next request is permitted, and count it.

        Raises:
            ProbeLimitReachedError: the probe has sent `max_requests` requests.
        """
        if self.max_requests is not None and self.sent_requests >= self.max_requests:
            raise ProbeLimitReachedError
        await self.wait_for_permit()
        self.sent_requests += 1

    async def back_off(self, seconds: float) -> None:
        """Wait before the next attempt for `seconds`, but at most for `MAX_WAIT_SECONDS`."""
        await asyncio.sleep(min(seconds, MAX_WAIT_SECONDS))


def _is_temperature_refused(record: TurnRecord) -> bool:
    """Return whether the endpoint refused the temperature and no other optional parameter."""
    if record.failure is None:
        return False
    return list_refused_parameters(record.failure, list_object_keys(record.request.body)) == ("temperature",)


def _parse_response(exchange: Exchange, wire: WireFormat) -> tuple[Turn | None, ExchangeError | None]:
    decoder = wire.build_decoder(_build_turn, lambda delta: None, is_streamed=False)
    decoder.feed(exchange.body)
    try:
        return decoder.close(), None
    except MalformedAnswerError as error:
        return None, classify_unreadable(exchange.status, exchange.body, str(error))


def _build_turn(answer: ChatAnswer) -> Turn:
    return Turn(answer.message, get_message_text(answer.message), finish_reason=answer.finish_reason)


def _run_tool(name: str, arguments: JsonObject, call_id: str) -> object:
    return {"value": arguments.get("value", "pong")}
