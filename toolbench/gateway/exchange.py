"""Request of one client with its response, and the trace that is stored of them."""

import json
import random
import time
from dataclasses import dataclass, field
from datetime import timedelta

from django.utils import timezone

from toolbench.gateway.dialects.chat import ChatDialect
from toolbench.gateway.request import Dialect, GatewayAnswer, GatewayError, GatewayRequest
from toolbench.gateway.turn import TurnOutcome
from toolbench.lab.models import GatewayTrace
from toolbench.lab.serving.served_aliases import ServedAlias
from toolbench.lab.serving.traces import MAX_KEPT_BYTES, TRAFFIC_DIALECTS
from toolbench.lab.traces.gateway_steps import pack_steps
from toolbench.lab.traces.step_facts import to_column_text
from toolbench.providers.driver.step_records import ExchangeStep
from toolbench.providers.http.request_template import build_endpoint_masker

CLIENT_LEFT_STATUS = 499  # status in the trace of a request whose client disconnected


@dataclass(slots=True)
class ClientExchange:
    """Request of one client and the response to it.

    A target is the requested alias or one of its fallbacks.

    Attributes:
        dialect: wire format of the request and the response.
        id: random id of the request, in hexadecimal digits.
        started_at: value of `time.perf_counter` when the request arrived.
        body: the client's request body.
        token_name: name of the API token; empty until the token is checked.
        request: the parsed body; None until the body is parsed.
        targets: the targets that were tried, in order.
        outcomes: results at the targets to which the request was sent, in order.
        answer: the answer; None without one.
        error: the error; None without one, also if the client disconnected.
        response: bytes of the answer; empty for an error before the first byte, and for a stream without kept bodies.
        sample: random number of at least 0 and below 100; the trace is kept if it is less than the last target's
            `keep_percent`.
    """

    dialect: Dialect
    id: str
    started_at: float
    body: bytes = b""
    token_name: str = ""
    request: GatewayRequest | None = None
    targets: list[ServedAlias] = field(default_factory=list)
    outcomes: list[TurnOutcome] = field(default_factory=list)
    answer: GatewayAnswer | None = None
    error: GatewayError | None = None
    response: bytearray = field(default_factory=bytearray)
    sample: float = field(default_factory=lambda: random.random() * 100)

    @property
    def served_by(self) -> ServedAlias | None:
        """The last target that was tried; None before the first one."""
        return self.targets[-1] if self.targets else None

    @property
    def keeps_trace(self) -> bool:
        """Whether the trace is among the share that the last target keeps; False without a target."""
        return self.served_by is not None and self.sample < self.served_by.keep_percent

    @property
    def keeps_bodies(self) -> bool:
        """Whether the trace is kept with its bodies: only if every target that was tried keeps them."""
        return self.keeps_trace and all(target.keep_bodies for target in self.targets)

    def build_trace(self, target: ServedAlias) -> GatewayTrace:
        """Return the unsaved row of this exchange, whose last target is `target`, without bodies."""
        seconds = time.perf_counter() - self.started_at
        steps = self._list_steps()
        usage = self.answer.usage if self.answer else None
        return GatewayTrace(
            alias=self.request.alias if self.request else "",
            served_by=target.name,
            model_name=target.model_name,
            token_name=self.token_name,
            simulated=target.simulated,
            dialect=self.dialect.name,
            stream=self.request.stream if self.request else False,
            at=timezone.now() - timedelta(seconds=seconds),
            status=200 if self.answer else self.error.status if self.error else CLIENT_LEFT_STATUS,
            code=self.error.code[:60] if self.error else "" if self.answer else "client_left",
            sentence=to_column_text(self.error.message if self.error else "", 2_000),
            path=self.answer.path if self.answer else "",
            calls=len(self.answer.calls) if self.answer else 0,
            changes=list(self.answer.list_change_names()) if self.answer else [],
            requests=len(steps),
            input_tokens=usage.input_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
            cost=usage.cost if usage else None,
            duration_ms=1000 * seconds,
            upstream_ms=sum(step.duration_ms for step in steps),
        )

    def _list_steps(self) -> list[ExchangeStep]:
        return [step for outcome in self.outcomes for step in outcome.steps]

    def count_body_bytes(self) -> int:
        """Return the number of bytes of the client's bodies and of the bodies of the last step, before truncation."""
        upstream_bytes = sum(len(step.request_body) + len(step.response_body) for step in self._list_steps()[-1:])
        return len(self.body) + len(self.response) + upstream_bytes

    def add_bodies(self, trace: GatewayTrace) -> None:
        """Add the bodies to the trace; mask the secrets of all targets and truncate each body to MAX_KEPT_BYTES.

        This function may be called in a thread.
        """
        trace.client_request = self._mask(self.body)[:MAX_KEPT_BYTES]
        trace.client_response = self._mask(bytes(self.response))[:MAX_KEPT_BYTES]
        line = self._render_traffic_line()
        trace.traffic_line = None if line is None else self._mask(line)
        if steps := self._list_steps():
            packed = pack_steps(steps)
            trace.steps = None if packed is None else self._mask_step(packed)
            trace.upstream_request = self._mask_step(steps[-1].request_body)[:MAX_KEPT_BYTES]
            trace.upstream_response = self._mask_step(steps[-1].response_body)[:MAX_KEPT_BYTES]

    def _mask(self, body: bytes) -> bytes:
        """Return the body with the secrets of all targets masked. A target without an endpoint has no known secrets."""
        for target in self.targets:
            if target.endpoint is not None:
                body = build_endpoint_masker(target.endpoint).mask_body(body)
        return body

    def _mask_step(self, body: bytes) -> bytes:
        """Return a part of a recorded step with the secrets of all targets masked.

        The secrets of the step's own target were masked when the step was recorded.
        """
        return self._mask(body) if len(self.targets) > 1 else body

    def _render_traffic_line(self) -> bytes | None:
        """Render request and answer as a line of recorded traffic in the form of chat completions.

        Returns:
            One JSON object; None if drafts can be created from the client's bodies themselves, if there is no answer,
            or if the object is longer than MAX_KEPT_BYTES.
        """
        if self.request is None or self.answer is None:
            return None
        if self.dialect.name in TRAFFIC_DIALECTS and not self.request.stream:
            return None
        tools = [tool.to_openai() for tool in self.request.tools.definitions]
        request = {"model": self.request.alias, "messages": self.request.messages, "tools": tools}
        response = ChatDialect().render(self.answer, with_changes=False)
        line = json.dumps({"request": request, "response": response}).encode()
        return line if len(line) <= MAX_KEPT_BYTES else None
