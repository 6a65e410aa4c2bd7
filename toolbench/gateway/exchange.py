"""One request of a client, what became of it, and its stored trace."""

import time
from dataclasses import dataclass, field
from datetime import timedelta

from django.utils import timezone

from toolbench.gateway.request import Dialect, GatewayAnswer, GatewayError, GatewayRequest
from toolbench.gateway.turn import TurnOutcome
from toolbench.lab.models import GatewayTrace
from toolbench.lab.serving.served_aliases import ServedAlias
from toolbench.lab.traces.step_facts import to_column_text
from toolbench.providers.driver.step_records import ExchangeStep
from toolbench.providers.http.request_template import build_endpoint_masker

MAX_KEPT_BYTES = 1 << 20  # of one body; a longer one is cut
CLIENT_LEFT = 499  # status of a request whose client left


@dataclass(slots=True)
class ClientExchange:
    """One request of a client and what became of it.

    Attributes:
        served_by: alias of the last target.
        outcomes: one for each target that was tried.
        response: bytes sent to the client.
    """

    dialect: Dialect
    id: str
    started: float
    body: bytes = b""
    token_name: str = ""
    request: GatewayRequest | None = None
    served_by: ServedAlias | None = None
    outcomes: list[TurnOutcome] = field(default_factory=list)
    answer: GatewayAnswer | None = None
    error: GatewayError | None = None
    response: bytearray = field(default_factory=bytearray)

    def build_trace(self, target: ServedAlias) -> GatewayTrace:
        """Return the row that is stored for this request, served by `target`. Known secrets are masked."""
        duration = time.perf_counter() - self.started
        steps = [step for outcome in self.outcomes for step in outcome.steps]
        usage = self.answer.usage if self.answer else None
        trace = GatewayTrace(
            alias=self.request.alias if self.request else "",
            served_by=target.name,
            model_name=target.model_name,
            token_name=self.token_name,
            simulated=target.simulated,
            dialect=self.dialect.name,
            stream=self.request.stream if self.request else False,
            at=timezone.now() - timedelta(seconds=duration),
            status=200 if self.answer else self.error.status if self.error else CLIENT_LEFT,
            code=self.error.code[:60] if self.error else "" if self.answer else "client_left",
            sentence=to_column_text(self.error.message if self.error else "", 2_000),
            path=self.answer.path if self.answer else "",
            calls=len(self.answer.calls) if self.answer else 0,
            changes=list(self.answer.list_change_names()) if self.answer else [],
            requests=len(steps),
            input_tokens=usage.input_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
            cost=usage.cost if usage else None,
            duration_ms=1000 * duration,
            upstream_ms=sum(step.duration_ms for step in steps),
        )
        if target.keep_bodies:
            self._add_bodies(trace, target, steps)
        return trace

    def _add_bodies(self, trace: GatewayTrace, target: ServedAlias, steps: list[ExchangeStep]) -> None:
        """Add the bodies; those of the upstream are masked already."""
        masker = build_endpoint_masker(target.endpoint) if target.endpoint else None
        sent, received = self.body, bytes(self.response)
        if masker:
            sent, received = masker.mask_body(sent), masker.mask_body(received)
        trace.client_request, trace.client_response = sent[:MAX_KEPT_BYTES], received[:MAX_KEPT_BYTES]
        if steps:
            trace.upstream_request = steps[-1].request_body[:MAX_KEPT_BYTES]
            trace.upstream_response = steps[-1].response_body[:MAX_KEPT_BYTES]
