"""Search of traces, only with the word that asks for them; their drafts, and their deletion by age."""

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.utils import timezone

from tests.factories import make_gateway_trace
from toolbench.lab.models import GatewayTrace
from toolbench.lab.results.site_search import search_site
from toolbench.lab.serving import traces
from toolbench.lab.serving.traces import MAX_KEPT_BYTES, can_make_draft, delete_old_traces, render_trace_age

pytestmark = pytest.mark.django_db


def list_hits(text: str) -> list[str]:
    return [hit.url for group in search_site(text) for hit in group.hits if "/gateway/" in hit.url]


def test_search_shows_traces_only_when_asked_for_them() -> None:
    trace = make_gateway_trace(alias="weather", model_name="vendor/m", code="invalid_tool_call", status=502)
    make_gateway_trace(alias="other")
    path = f"/gateway/traces/{trace.pk}/"
    assert len(list_hits("source:gateway")) == 2
    for text in ("source:gateway weather", "Source:Gateway VENDOR invalid", f"source:gateway #{trace.pk}"):
        assert list_hits(text) == [path], text
    for text in ("weather", "gateway", "source", "source:other weather", "source:gateway weather nothing"):
        assert list_hits(text) == [], text


def test_search_reads_the_newest_traces_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MAX_SEARCHED", 2)
    kept = [make_gateway_trace(alias="Weather_100%") for _ in range(3)]
    newest = [f"/gateway/traces/{trace.pk}/" for trace in reversed(kept[1:])]
    assert list_hits("source:gateway") == list_hits("source:gateway weather_100%") == newest
    assert list_hits("source:gateway weather-100") == []


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
    assert delete_old_traces() == 3
    assert [trace.pk for trace in GatewayTrace.objects.all()] == [kept.pk]
    assert list_hits("source:gateway aged") == [f"/gateway/traces/{kept.pk}/"]
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
