"""Traces of the gateway: storage, list and bodies."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from toolbench.lab.models import GatewayTrace
from toolbench.lab.sql import load_statement
from toolbench.lab.traces.code_view import CodeView, render_body
from toolbench.lab.worker.database_thread import is_unavailable, open_cursor

TRACES_PER_PAGE = 100
TRACES_PER_DELETION = 500  # most traces that one transaction deletes, so that it holds no lock for long
MAX_DELETIONS = 20  # highest number of these transactions in one sweep
MAX_KEPT_BYTES = 1 << 20  # bytes that are kept of one body; a longer body is truncated
SUCCESS_STATUS = 200
TRAFFIC_DIALECTS = ("chat", "responses")  # wire formats whose bodies, if not streamed, can be read as recorded traffic
_RESERVE_IDS = "SELECT nextval(pg_get_serial_sequence('lab_gatewaytrace', 'id')) FROM generate_series(1, %s)"
BODY_COLUMNS = ("client_request", "client_response", "upstream_request", "upstream_response", "traffic_line", "steps")
_ROW_FIELDS = tuple(field for field in GatewayTrace._meta.concrete_fields if field.attname not in BODY_COLUMNS)
_ROW_ENCODER = json.JSONEncoder(default=str, allow_nan=False)


@dataclass(frozen=True, slots=True)
class TracePage:
    """One page of the list of traces.

    Attributes:
        traces: newest first.
        next_before: argument `before` of `get_trace_page` for the next page; None on the last page.
    """

    traces: tuple[GatewayTrace, ...]
    next_before: int | None


@dataclass(frozen=True, slots=True)
class TraceBody:
    """One body of a trace for display.

    Attributes:
        title: sender and receiver, such as `Client to gateway`.
        note: size of the body, such as `1,204 bytes`.
    """

    title: str
    note: str
    code: CodeView


class TracesRefusedError(Exception):
    """Raised if the database refused traces; the other traces of the batch are stored.

    Attributes:
        count: number of the refused traces.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(f"The database refused {count} traces.")


def write_traces(traces: Sequence[GatewayTrace]) -> None:
    """Insert traces.

    Traces without an id get one first. So the call can be repeated if the database's answer was lost: traces that are
    stored already are skipped. If the database refuses the traces together, each is inserted by itself.

    Raises:
        TracesRefusedError: the database refused some traces; the others are stored.
        django.db.Error: the database is unavailable; the same call may be repeated.
    """
    new_traces = [trace for trace in traces if trace.pk is None]
    if new_traces:
        with connection.cursor() as cursor:
            cursor.execute(_RESERVE_IDS, [len(new_traces)])
            for trace, (trace_id,) in zip(new_traces, cursor.fetchall(), strict=True):
                trace.pk = trace_id
    try:
        _insert(traces)
    except Exception as error:
        if is_unavailable(error):
            raise
        _write_one_by_one(traces)


def _insert(traces: Sequence[GatewayTrace]) -> None:
    """Insert traces by one statement, which takes a fifth of the time of `bulk_create`."""
    rows = [
        {"place": place, **{field.attname: getattr(trace, field.attname) for field in _ROW_FIELDS}}
        for place, trace in enumerate(traces, start=1)
    ]
    bodies = [[getattr(trace, name) for trace in traces] for name in BODY_COLUMNS]
    cursor = open_cursor()
    with connection.wrap_database_errors:
        cursor.execute(_build_insertion(), [_ROW_ENCODER.encode(rows), *bodies])


@cache
def _build_insertion() -> str:
    return load_statement(
        "serving/store_traces",
        typed=", ".join(f"{field.attname} {field.db_type(connection)}" for field in _ROW_FIELDS),
        names=", ".join((*(field.attname for field in _ROW_FIELDS), *BODY_COLUMNS)),
        body_names=", ".join(BODY_COLUMNS),
        body_values=", ".join(["%b::bytea[]"] * len(BODY_COLUMNS)),
    )


def _write_one_by_one(traces: Sequence[GatewayTrace]) -> None:
    refusals = []
    for trace in traces:
        try:
            _insert([trace])
        except Exception as error:
            if is_unavailable(error):
                raise
            refusals.append(error)
    if refusals:
        raise TracesRefusedError(len(refusals)) from refusals[0]


def delete_old_traces() -> int:
    """Delete the traces that are older than settings.TRACE_DAYS days, oldest first; return their number.

    One call deletes at most TRACES_PER_DELETION × MAX_DELETIONS traces, and none if TRACE_DAYS is 0.
    """
    if not settings.TRACE_DAYS:
        return 0
    total = 0
    for _ in range(MAX_DELETIONS):
        deleted = _delete_oldest_traces(timezone.now() - timedelta(days=settings.TRACE_DAYS))
        total += deleted
        if deleted < TRACES_PER_DELETION:
            break
    return total


@transaction.atomic
def _delete_oldest_traces(before: datetime) -> int:
    """Delete the oldest traces from before a time, with their search texts; return their number.

    At most TRACES_PER_DELETION are deleted. Locked traces are skipped.
    """
    oldest = GatewayTrace.objects.filter(at__lt=before).order_by("at").select_for_update(skip_locked=True)
    trace_ids = list(oldest.values_list("pk", flat=True)[:TRACES_PER_DELETION])
    GatewayTrace.objects.filter(pk__in=trace_ids).only("pk").delete()
    return len(trace_ids)


def render_trace_retention() -> str:
    """Return the sentence about how long traces are kept."""
    if not settings.TRACE_DAYS:
        return "Traces are not deleted. Set TOOLBENCH_TRACE_DAYS to delete traces after a number of days."
    return f"Traces are deleted after {settings.TRACE_DAYS:g} days (TOOLBENCH_TRACE_DAYS)."


def get_trace_page(alias: str, before: int | None, limit: int = TRACES_PER_PAGE) -> TracePage:
    """Return a page of traces, newest first and without bodies, with one query.

    Args:
        alias: name of an alias; empty for all.
        before: only traces with a lower primary key are listed; None for the first page.
        limit: maximum number of traces on a page.
    """
    traces = GatewayTrace.objects.defer(*BODY_COLUMNS)
    traces = traces.filter(alias=alias) if alias else traces
    traces = traces if before is None else traces.filter(pk__lt=before)
    rows = tuple(traces[: limit + 1])
    shown = rows[:limit]
    return TracePage(shown, shown[-1].pk if len(rows) > len(shown) else None)


class NoDraftError(Exception):
    """Raised if no draft of a test case can be created from a trace; the message gives the reason."""


def can_make_draft(trace: GatewayTrace) -> bool:
    """Return whether a draft of a test case can be created from the trace.

    The request must have succeeded. Either its `traffic_line` must be stored, or its complete bodies in a form that
    can be read as recorded traffic.
    """
    bodies = trace.client_request, trace.client_response
    has_bodies = all(body is not None and len(body) < MAX_KEPT_BYTES for body in bodies)
    can_be_read = has_bodies and not trace.stream and trace.dialect in TRAFFIC_DIALECTS
    return trace.status == SUCCESS_STATUS and (trace.traffic_line is not None or can_be_read)


def build_traffic_line(trace: GatewayTrace) -> bytes:
    """Return the request and answer of a client as one JSON object of recorded traffic.

    Raises:
        NoDraftError: the request failed, or its bodies were not kept, were truncated or cannot be read as traffic.
    """
    if not can_make_draft(trace):
        raise NoDraftError(
            "No draft can be created: the request failed, or what was kept of it cannot be read as recorded traffic."
        )
    if trace.traffic_line is not None:
        return bytes(trace.traffic_line)
    request, response = bytes(trace.client_request or b""), bytes(trace.client_response or b"")
    return b'{"request": %b, "response": %b}' % (request, response)


def list_bodies(trace: GatewayTrace) -> tuple[TraceBody, ...]:
    """Return the bodies that were kept, in the order of sending.

    If steps are stored, the bodies between gateway and model are left out: the page shows them with the last step.
    """
    titles = {"client_request": "Client to gateway"}
    if trace.steps is None:
        titles |= {"upstream_request": "Gateway to model", "upstream_response": "Model to gateway"}
    titles["client_response"] = "Gateway to client"
    return tuple(
        TraceBody(title, f"{len(body):,} bytes", render_body(bytes(body)))
        for name, title in titles.items()
        if (body := getattr(trace, name)) is not None
    )
