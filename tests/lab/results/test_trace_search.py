"""Search of gateway traces, which needs the word `source:gateway`."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import make_gateway_trace
from toolbench.lab.results import trace_search
from toolbench.lab.results.site_search import search_site
from toolbench.lab.results.trace_search import search_traces
from toolbench.lab.traces.search_text import GATEWAY_TRACES, update_search_texts

pytestmark = pytest.mark.django_db


def list_hits(text: str) -> list[str]:
    return [hit.url for group in search_site(text) for hit in group.hits if "/gateway/" in hit.url]


def test_search_site_finds_traces_only_with_source_gateway() -> None:
    trace = make_gateway_trace(alias="weather", model_name="vendor/m", code="invalid_tool_call", status=502)
    make_gateway_trace(alias="other")
    update_search_texts(GATEWAY_TRACES)
    path = f"/gateway/traces/{trace.pk}/"
    assert len(list_hits("source:gateway")) == 2
    found = ("weather", "VENDOR invalid", f"#{trace.pk}", 'invalid "ther vendor/M ch"', "call weath")
    for text in found:
        assert list_hits(f"Source:Gateway {text}") == list_hits(f"{text} source:gateway") == [path], text
    for text in ("weather", "gateway", "source", "source:other weather", "xsource:gateway weather"):
        assert list_hits(text) == [], text
    for text in ("weather nothing", '"eather  vendor"', "weather other", '"_eather vend"'):
        assert list_hits(f"source:gateway {text}") == [], text


def test_search_site_finds_text_of_stored_trace_bodies() -> None:
    trace = make_gateway_trace(client_request=b'{"messages": [{"role": "user", "content": "Is it dry in Bern?"}]}')
    update_search_texts(GATEWAY_TRACES)
    assert list_hits("source:gateway bern dry") == [f"/gateway/traces/{trace.pk}/"]


def test_search_traces_finds_older_traces_through_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_search, "NEWEST_ID_COUNT", 2)
    traces = [make_gateway_trace(alias="kept") for _ in range(4)]
    update_search_texts(GATEWAY_TRACES)
    newest_first = [trace.pk for trace in reversed(traces)]
    for limit in (1, 2, 3, 4, 5):
        found = search_traces("source:gateway kept", limit).traces
        assert [trace.pk for trace in found] == newest_first[:limit]


def test_search_site_notes_traces_without_search_text() -> None:
    assert search_site("source:gateway kept") == ()
    make_gateway_trace(alias="kept", at=timezone.now() - timedelta(seconds=30))
    (group,) = search_site("source:gateway kept")
    assert group.hits == ()
    assert group.note.startswith("Traces of the last 3")
    (all_traces,) = search_site("source:gateway")
    assert (len(all_traces.hits), all_traces.note) == (1, "")


def test_search_traces_finds_the_trace_of_a_number_behind_newer_matches() -> None:
    oldest = make_gateway_trace()
    for _ in range(2):
        make_gateway_trace(sentence=f"see {oldest.pk}")
    update_search_texts(GATEWAY_TRACES)
    assert oldest in search_traces(f"source:gateway {oldest.pk}", 2).traces
