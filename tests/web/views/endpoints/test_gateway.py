"""Pages of the gateway: an alias made from choices and from a measured configuration, changed, deleted; its traces."""

import json

import pytest
from django.test import Client

from tests.factories import make_cell, make_config, make_gateway_trace, make_model, make_run
from tests.lab.interchange.traffic.records import build_logged
from tests.page_html import read_html
from toolbench.lab.models import ModelAlias, SamplingProfile, TrafficDraft

pytestmark = pytest.mark.django_db


@pytest.fixture
def fields() -> dict[str, object]:
    SamplingProfile.objects.get_or_create(name="default")
    return {
        "name": "weather", "model": make_model().pk, "profile": "default", "strategy": "production", "method": "native",
        "repairs": "on", "keep_percent": 50,
    }  # fmt: skip


def test_alias_is_made_changed_and_deleted(owner_client: Client, fields: dict[str, object]) -> None:
    assert "weather" in read_html(owner_client.post("/gateway/new/", fields, follow=True))
    alias = ModelAlias.objects.get()
    assert (alias.repairs, alias.keep_bodies, alias.keep_percent) == (True, False, 50)
    assert alias.layers
    owner_client.post(f"/gateway/{alias.pk}/", fields | {"name": "weather-2", "keep_percent": 0})
    alias.refresh_from_db()
    assert (alias.name, alias.keep_percent) == ("weather-2", 0)
    owner_client.post(f"/gateway/{alias.pk}/delete/")
    assert not ModelAlias.objects.exists()


def test_measured_configuration_is_served_with_its_frozen_layers(owner_client: Client) -> None:
    config = make_config(make_run(), make_model("vendor/measured"), layers=[["run", {"max_turns": 3}]])
    make_cell(config)
    page = owner_client.get(f"/gateway/new/?config={config.pk}")
    assert "the measured configuration" in read_html(page)
    owner_client.post("/gateway/new/", {"config": config.pk, "name": "measured", "keep_percent": 100})
    alias = ModelAlias.objects.get()
    assert (alias.layers, alias.config_id, alias.model.name) == (config.layers, config.pk, "vendor/measured")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": "a b"}, "letters, digits, dots"),
        ({"name": ""}, "This field is required"),
        ({"model": "0"}, "Select a valid choice"),
        ({"strategy": "no such"}, "There is no strategy or preset"),
        ({"fallbacks": "other"}, "There is no other alias other"),
        ({"keep_percent": "101"}, "less than or equal to 100"),
        ({"config": "999999"}, "There is no configuration 999999"),
    ],
)
def test_bad_input_is_named(
    owner_client: Client, fields: dict[str, object], change: dict[str, object], sentence: str
) -> None:
    answer = owner_client.post("/gateway/new/", fields | change)
    assert answer.status_code == 422
    assert sentence in read_html(answer)
    assert not ModelAlias.objects.exists()


def test_name_of_an_alias_is_taken_once(owner_client: Client, fields: dict[str, object]) -> None:
    owner_client.post("/gateway/new/", fields)
    assert "The alias weather already exists" in read_html(owner_client.post("/gateway/new/", fields))


def test_traces_are_listed_by_alias_and_shown_with_their_bodies(owner_client: Client) -> None:
    kept = make_gateway_trace(alias="weather", client_request=b'{"q": "<b>"}', simulated=True)
    make_gateway_trace(alias="other", status=502, code="invalid_tool_call", sentence="Not valid.")
    page = read_html(owner_client.get("/gateway/traces/?alias=weather"))
    assert f"/gateway/traces/{kept.pk}/" in page
    assert "invalid_tool_call" not in page
    shown = read_html(owner_client.get(f"/gateway/traces/{kept.pk}/"))
    assert "&lt;b&gt;" in shown
    assert "simulated" in shown
    assert owner_client.get("/gateway/traces/999999/").status_code == 404


def test_pages_of_traces_continue_where_the_last_one_ended(owner_client: Client) -> None:
    for _ in range(101):
        make_gateway_trace()
    first = owner_client.get("/gateway/traces/").context["page"]
    second = owner_client.get(f"/gateway/traces/?before={first.next_before}").context["page"]
    assert (len(first.traces), len(second.traces), second.next_before) == (100, 1, None)


def test_trace_becomes_a_draft_of_a_case(owner_client: Client) -> None:
    logged = build_logged()
    trace = make_gateway_trace(
        client_request=json.dumps(logged["request"]).encode(), client_response=json.dumps(logged["response"]).encode()
    )
    assert "A draft was made." in read_html(owner_client.post(f"/gateway/traces/{trace.pk}/draft/", follow=True))
    assert TrafficDraft.objects.get().title.startswith("get_weather")
    assert "is a draft already" in read_html(owner_client.post(f"/gateway/traces/{trace.pk}/draft/", follow=True))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "bodies of this request were not kept"),
        ({"client_request": b"{}", "client_response": b"x", "stream": True}, "not streamed"),
        ({"client_request": b"{}", "client_response": b"{}", "dialect": "messages"}, "chat completions or Responses"),
        ({"client_request": b"{}", "client_response": b"cut"}, "the record is not a JSON object"),
        ({"client_request": b"{}", "client_response": b"{}"}, "the record has no answer"),
    ],
)
def test_trace_without_a_draft_says_why(owner_client: Client, fields: dict[str, object], sentence: str) -> None:
    trace = make_gateway_trace(**fields)
    assert sentence in read_html(owner_client.post(f"/gateway/traces/{trace.pk}/draft/", follow=True))
    assert not TrafficDraft.objects.exists()
