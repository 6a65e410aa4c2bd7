"""Traces of the gateway: written in batches, listed and read."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.lab.models import GatewayTrace

TRACES_PER_PAGE = 100
SUCCESS = 200  # HTTP status of an answer
TRAFFIC_DIALECTS = ("chat", "responses")
_BODIES = ("client_request", "client_response", "upstream_request", "upstream_response")


@dataclass(frozen=True, slots=True)
class TracePage:
    """One page of traces, newest first. `next_before` continues it; None at the end."""

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
    """Return the newest traces, without bodies. One query.

    Args:
        alias: name of an alias; empty for all.
        before: primary key below which traces are listed; None for the newest ones.
    """
    found = GatewayTrace.objects.defer(*_BODIES)
    found = found.filter(alias=alias) if alias else found
    found = found if before is None else found.filter(pk__lt=before)
    rows = tuple(found[: TRACES_PER_PAGE + 1])
    shown = rows[:TRACES_PER_PAGE]
    return TracePage(shown, shown[-1].pk if len(rows) > len(shown) else None)


class NoDraftError(Exception):
    """Trace from which no draft of a case can be made; the text says why."""


def build_traffic_line(trace: GatewayTrace) -> bytes:
    """Return request and answer as a line of recorded traffic.

    Raises:
        NoDraftError: there are no bodies, or they have a form that traffic is not read in.
    """
    if trace.client_request is None or trace.client_response is None:
        raise NoDraftError("The bodies of this request were not kept.")
    if trace.stream or trace.status != SUCCESS or trace.dialect not in TRAFFIC_DIALECTS:
        raise NoDraftError("A draft is made of an answer that was not streamed, in chat completions or Responses.")
    return b'{"request": %b, "response": %b}' % (bytes(trace.client_request), bytes(trace.client_response))


def list_bodies(trace: GatewayTrace) -> tuple[TraceBody, ...]:
    """Return the bodies that were kept, in the order in which they were sent."""
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
