"""Traces of the gateway: storage, list and bodies."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.lab.models import GatewayTrace

TRACES_PER_PAGE = 100
SUCCESS_STATUS = 200
TRAFFIC_DIALECTS = ("chat", "responses")  # wire formats of which drafts can be created
_BODY_COLUMNS = ("client_request", "client_response", "upstream_request", "upstream_response")


@dataclass(frozen=True, slots=True)
class TracePage:
    """One page of the list of traces.

    Attributes:
        traces: newest first.
        next_before: `before` of the next page; None on the last page.
    """

    traces: tuple[GatewayTrace, ...]
    next_before: int | None


@dataclass(frozen=True, slots=True)
class TraceBody:
    """One body of a trace as text."""

    label: str
    text: str


def write_traces(traces: Sequence[GatewayTrace]) -> None:
    """Insert traces with one statement."""
    GatewayTrace.objects.bulk_create(traces)


def get_trace_page(alias: str, before: int | None) -> TracePage:
    """Return a page of traces, newest first and without bodies, with one query.

    Args:
        alias: name of an alias; empty for all.
        before: only traces with a lower primary key are listed; None for the first page.
    """
    traces = GatewayTrace.objects.defer(*_BODY_COLUMNS)
    traces = traces.filter(alias=alias) if alias else traces
    traces = traces if before is None else traces.filter(pk__lt=before)
    rows = tuple(traces[: TRACES_PER_PAGE + 1])
    shown = rows[:TRACES_PER_PAGE]
    return TracePage(shown, shown[-1].pk if len(rows) > len(shown) else None)


class NoDraftError(Exception):
    """Trace from which no draft of a case can be created; the message gives the reason."""


def build_traffic_line(trace: GatewayTrace) -> bytes:
    """Return the request and answer of a client as a JSON line of recorded traffic.

    Raises:
        NoDraftError: the bodies were not kept, the answer was streamed or failed, or the wire format is not in
            TRAFFIC_DIALECTS.
    """
    if trace.client_request is None or trace.client_response is None:
        raise NoDraftError("The bodies of this request were not kept, so no draft can be created.")
    if trace.stream or trace.status != SUCCESS_STATUS or trace.dialect not in TRAFFIC_DIALECTS:
        raise NoDraftError("A draft needs a complete answer in chat completions or Responses that was not streamed.")
    return b'{"request": %b, "response": %b}' % (bytes(trace.client_request), bytes(trace.client_response))


def list_bodies(trace: GatewayTrace) -> tuple[TraceBody, ...]:
    """Return the bodies that were kept, in the order of sending."""
    labels = {
        "client_request": "Client to gateway",
        "upstream_request": "Gateway to model",
        "upstream_response": "Model to gateway",
        "client_response": "Gateway to client",
    }
    return tuple(
        TraceBody(label, bytes(body).decode("utf-8", "replace"))
        for name, label in labels.items()
        if (body := getattr(trace, name)) is not None
    )
