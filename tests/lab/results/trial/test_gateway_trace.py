"""A gateway trace in the views of a trial: requests, raw answers, changes, calls and times of a real request."""

from typing import Any

import pytest
from django.http import QueryDict
from django.test import Client

from tests.factories import make_gateway_trace
from tests.gateway.running import (
    chat_body,
    messages_body,
    post,
    read_traces,
    run,
    scripted_gateway,
    simulated_gateway,
)
from tests.page_html import read_html
from toolbench.lab.models import GatewayTrace
from toolbench.lab.results.trial.gateway_trace import build_gateway_trace_view, parse_trace_query
from toolbench.providers.scripted_server import ScriptedReply, error_reply, text_reply, tool_call_reply

pytestmark = pytest.mark.django_db(transaction=True)

CALL = ("get_weather", {"city": "Berlin"})


def request_scripted(*replies: ScriptedReply, body: Any = None, path: str = "/v1/chat/completions") -> GatewayTrace:
    """Send one request through a gateway with a scripted upstream and return its trace."""

    async def send() -> None:
        async with scripted_gateway(*replies) as (gateway, _):
            await post(gateway, body or chat_body(), path)
            await read_traces()

    run(send)
    return GatewayTrace.objects.get()


def list_titles(trace: GatewayTrace) -> list[str]:
    view = build_gateway_trace_view(trace, parse_trace_query(QueryDict()))
    return [row.title for turn in view.timeline for row in turn.rows]


def test_gateway_trace_view_has_the_rows_of_a_trial_step(owner_client: Client) -> None:
    trace = request_scripted(tool_call_reply(CALL))
    assert list_titles(trace) == ["Request", "Raw response", "After transforms, no change", "Parsed calls, 1"]
    address = f"/gateway/traces/{trace.pk}/"
    html = read_html(owner_client.get(address))
    for text in ("Turn 1, raw response", "HTTP 200", "Normalised, as the loop read it", "Client to gateway"):
        assert text in html
    assert "/steps/" not in html
    assert "Gateway to model" not in html
    for part, texts in {
        "request": ("Raw, as sent", "secrets are masked"),
        "transforms": ("Raw, as received",),
        "calls": ("Normalised, as dispatched", "get_weather"),
        "nothing": ("Turn 1, raw response",),
    }.items():
        page = read_html(owner_client.get(f"{address}?step=1.{part}"))
        assert [text for text in texts if text not in page] == []


def test_gateway_trace_conversation_shows_messages_and_calls(owner_client: Client) -> None:
    trace = request_scripted(tool_call_reply(CALL), body=messages_body(), path="/v1/messages")
    html = read_html(owner_client.get(f"/gateway/traces/{trace.pk}/?view=conversation"))
    for text in ("How is the weather in Berlin?", "1 tool offered: get_weather", "not run", "Berlin"):
        assert text in html
    assert "differences" not in html


def test_gateway_trace_re_prompt_has_both_requests_but_last_bodies(owner_client: Client) -> None:
    trace = request_scripted(tool_call_reply(("get_weather", {"town": 1})), tool_call_reply(CALL))
    assert list_titles(trace)[::4] == ["Request", "Request"]
    view = build_gateway_trace_view(trace, parse_trace_query(QueryDict("step=2.response")))
    assert (view.lacks_bodies, view.step and view.step.title) == (True, "Turn 2, raw response")
    html = read_html(owner_client.get(f"/gateway/traces/{trace.pk}/?step=1.response"))
    assert "Only the bodies of the last request to the model are stored." in html


def test_gateway_trace_of_a_failed_request_shows_its_error(owner_client: Client) -> None:
    trace = request_scripted(error_reply(503, "busy"))
    assert list_titles(trace) == ["Request", "503 answer"]
    assert "busy" in read_html(owner_client.get(f"/gateway/traces/{trace.pk}/"))


def test_gateway_trace_shows_what_transforms_changed(owner_client: Client) -> None:
    async def send() -> None:
        async with simulated_gateway("tool-calls-object") as gateway:
            await post(gateway, chat_body())
            await read_traces()

    run(send)
    trace = GatewayTrace.objects.get()
    (name,) = trace.changes
    html = read_html(owner_client.get(f"/gateway/traces/{trace.pk}/?step=1.transforms"))
    assert f"<code>{name}</code>" in html
    assert "What the transforms changed here" in html


def test_gateway_trace_without_steps_shows_its_bodies(owner_client: Client) -> None:
    trace = make_gateway_trace(upstream_request=b'{"a": 1}', upstream_response=b"{}")
    html = read_html(owner_client.get(f"/gateway/traces/{trace.pk}/?view=conversation&step=1.calls"))
    assert "Gateway to model" in html
    assert 'id="steps"' not in html


def test_gateway_trace_without_kept_bodies_has_no_steps() -> None:
    async def send() -> None:
        async with scripted_gateway(text_reply("Hi"), keep_bodies=False) as (gateway, _):
            await post(gateway, chat_body())
            await read_traces()

    run(send)
    assert GatewayTrace.objects.get().steps is None
