"""Drafts of traces, and the deletion of traces by age."""

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.utils import timezone

from tests.factories import make_gateway_trace
from toolbench.lab.models import GatewayTrace, GatewayTraceText
from toolbench.lab.serving import traces
from toolbench.lab.serving.traces import (
    MAX_KEPT_BYTES,
    TracesRefusedError,
    can_make_draft,
    delete_old_traces,
    render_trace_retention,
    write_traces,
)
from toolbench.lab.traces.search_text import GATEWAY_TRACES, update_search_texts

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("column", ["client_request", "client_response"])
def test_can_make_draft_of_trace_with_truncated_body_is_false(column: str) -> None:
    bodies = {"client_request": b"{}", "client_response": b"{}"}
    assert can_make_draft(make_gateway_trace(**bodies))
    assert not can_make_draft(make_gateway_trace(**bodies | {column: b"x" * MAX_KEPT_BYTES}))
    assert can_make_draft(make_gateway_trace(**bodies | {column: b"x" * MAX_KEPT_BYTES, "traffic_line": b"{}"}))


def make_trace_of_age(days: float) -> GatewayTrace:
    return make_gateway_trace(alias="aged", at=timezone.now() - timedelta(days=days))


def test_delete_old_traces_keeps_newer_traces(settings: LazySettings) -> None:
    settings.TRACE_DAYS = 2.5
    for days in (400, 3, 2.6):
        make_trace_of_age(days)
    kept = make_trace_of_age(2.4)
    update_search_texts(GATEWAY_TRACES)
    make_trace_of_age(3)  # without a search text
    assert delete_old_traces() == 4
    assert [trace.pk for trace in GatewayTrace.objects.all()] == [kept.pk]
    assert [text.pk for text in GatewayTraceText.objects.all()] == [kept.pk]
    assert render_trace_retention() == "Traces are deleted after 2.5 days (TOOLBENCH_TRACE_DAYS)."


def test_delete_old_traces_works_in_batches_from_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "TRACES_PER_DELETION", 2)
    monkeypatch.setattr(traces, "MAX_DELETIONS", 2)
    newest, *_ = [make_trace_of_age(100 + number) for number in range(5)]
    assert delete_old_traces() == 4
    assert GatewayTrace.objects.get() == newest
    assert delete_old_traces() == 1


def test_delete_old_traces_with_zero_days_deletes_nothing(settings: LazySettings) -> None:
    settings.TRACE_DAYS = 0
    make_trace_of_age(4000)
    assert delete_old_traces() == 0
    assert "not deleted" in render_trace_retention()


def build_trace(**columns: object) -> GatewayTrace:
    return GatewayTrace(
        **{"alias": "a", "dialect": "chat", "at": timezone.now(), "status": 200, "duration_ms": 1.5} | columns
    )


def test_write_traces_stores_every_column_unchanged() -> None:
    full = build_trace(
        alias="weather – “1”",
        served_by="fallback",
        model_name="vendor/m",
        token_name="CI",
        simulated=True,
        stream=True,
        code="invalid_tool_call",
        sentence='A "quoted" \\ sentence\nwith é and 日本',
        path="native",
        calls=2,
        changes=["one", "zwei ü"],
        requests=3,
        input_tokens=5_000_000_000,
        output_tokens=12,
        cost=0.1 + 0.2,
        upstream_ms=1e-9,
        client_request=bytes(range(256)),
        client_response=b"",
        upstream_request=b'{"a": "\\u0000"}',
        upstream_response=b"\xff\x00",
        traffic_line=b"{}",
        steps=b"[]",
    )
    bare = build_trace()
    write_traces([full, bare])
    names = [field.attname for field in GatewayTrace._meta.concrete_fields]
    for trace in (full, bare):
        stored = GatewayTrace.objects.get(pk=trace.pk)
        assert {name: getattr(stored, name) for name in names} == {name: getattr(trace, name) for name in names}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("columns", [{"sentence": "\x00"}, {"sentence": "\ud800"}, {"cost": float("nan")}])
def test_write_traces_refuses_only_unstorable_trace(columns: dict[str, object]) -> None:
    with pytest.raises(TracesRefusedError):
        write_traces([build_trace(), build_trace(**columns), build_trace()])
    assert GatewayTrace.objects.count() == 2
