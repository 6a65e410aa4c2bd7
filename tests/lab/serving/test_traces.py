"""Search of traces, only with the word that asks for them; traces of which no draft can be made."""

import pytest

from tests.factories import make_gateway_trace
from toolbench.lab.results.site_search import search_site
from toolbench.lab.serving.traces import MAX_KEPT_BYTES, can_make_draft

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


@pytest.mark.parametrize("column", ["client_request", "client_response"])
def test_trace_with_a_truncated_body_gives_no_draft(column: str) -> None:
    bodies = {"client_request": b"{}", "client_response": b"{}"}
    assert can_make_draft(make_gateway_trace(**bodies))
    assert not can_make_draft(make_gateway_trace(**bodies | {column: b"x" * MAX_KEPT_BYTES}))
    assert can_make_draft(make_gateway_trace(**bodies | {column: b"x" * MAX_KEPT_BYTES, "traffic_line": b"{}"}))
