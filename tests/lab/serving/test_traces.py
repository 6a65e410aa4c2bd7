"""Drafts of traces, and the deletion of traces by age."""

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.utils import timezone

from tests.factories import make_gateway_trace
from toolbench.lab.models import GatewayTrace, GatewayTraceText
from toolbench.lab.serving import traces
from toolbench.lab.serving.traces import MAX_KEPT_BYTES, can_make_draft, delete_old_traces, render_trace_age
from toolbench.lab.traces.search_text import GATEWAY_TRACES, update_search_texts

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("column", ["client_request", "client_response"])
def test_trace_with_a_truncated_body_gives_no_draft(column: str) -> None:
    bodies = {"client_request": b"{}", "client_response": b"{}"}
    assert can_make_draft(make_gateway_trace(**bodies))
    assert not can_make_draft(make_gateway_trace(**bodies | {column: b"x" * MAX_KEPT_BYTES}))
    assert can_make_draft(make_gateway_trace(**bodies | {column: b"x" * MAX_KEPT_BYTES, "traffic_line": b"{}"}))


def make_trace_of_age(days: float) -> GatewayTrace:
    return make_gateway_trace(alias="aged", at=timezone.now() - timedelta(days=days))


def test_old_traces_are_deleted_and_newer_ones_stay(settings: LazySettings) -> None:
    settings.TRACE_DAYS = 2.5
    for days in (400, 3, 2.6):
        make_trace_of_age(days)
    kept = make_trace_of_age(2.4)
    update_search_texts(GATEWAY_TRACES)
    make_trace_of_age(3)  # without a search text
    assert delete_old_traces() == 4
    assert [trace.pk for trace in GatewayTrace.objects.all()] == [kept.pk]
    assert [text.pk for text in GatewayTraceText.objects.all()] == [kept.pk]
    assert render_trace_age() == "Traces are deleted after 2.5 days (TOOLBENCH_TRACE_DAYS)."


def test_deletion_takes_the_oldest_traces_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "TRACES_PER_DELETION", 2)
    monkeypatch.setattr(traces, "MAX_DELETIONS", 2)
    newest, *_ = [make_trace_of_age(100 + number) for number in range(5)]
    assert delete_old_traces() == 4
    assert GatewayTrace.objects.get() == newest
    assert delete_old_traces() == 1


def test_no_trace_is_deleted_with_an_age_of_zero(settings: LazySettings) -> None:
    settings.TRACE_DAYS = 0
    make_trace_of_age(4000)
    assert delete_old_traces() == 0
    assert "not deleted" in render_trace_age()
