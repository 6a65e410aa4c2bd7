"""Pages of the gateway: aliases, promotions, roll-backs and traces."""

import json
import re

import pytest
from django.test import Client

from tests.factories import make_config, make_gateway_trace, make_measured_config, make_model, make_provider, make_run
from tests.lab.interchange.traffic.records import build_logged
from tests.page_html import read_html
from toolbench.lab.models import (
    AuditEntry,
    DecisionRecord,
    Model,
    ModelAlias,
    Provider,
    Run,
    RunConfig,
    SamplingProfile,
    Schedule,
    TrafficDraft,
)
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.decide.records import save_record
from toolbench.lab.serving.aliases import AliasChoice, freeze_config, save_alias
from toolbench.lab.serving.bindings import BindingChange, Cause, bind_alias

pytestmark = pytest.mark.django_db


@pytest.fixture
def fields() -> dict[str, object]:
    SamplingProfile.objects.get_or_create(name="default")
    return {
        "name": "weather", "model": make_model().pk, "profile": "default", "strategy": "production", "method": "native",
        "repairs": "on", "keep_percent": 50,
    }  # fmt: skip


def test_alias_form_creates_changes_and_deletes_alias(owner_client: Client, fields: dict[str, object]) -> None:
    assert "weather" in read_html(owner_client.post("/gateway/new/", fields, follow=True))
    alias = ModelAlias.objects.get()
    assert (alias.repairs, alias.keep_bodies, alias.keep_percent) == (True, False, 50)
    assert alias.layers
    changes = {"name": "weather-2", "keep_percent": 0, "binding": alias.bindings.get().pk}
    owner_client.post(f"/gateway/{alias.pk}/", fields | changes)
    alias.refresh_from_db()
    assert (alias.name, alias.keep_percent) == ("weather-2", 0)
    owner_client.post(f"/gateway/{alias.pk}/delete/")
    assert not ModelAlias.objects.exists()


def test_alias_form_opened_before_rollback_is_shown_again(owner_client: Client, fields: dict[str, object]) -> None:
    owner_client.post("/gateway/new/", fields)
    alias = ModelAlias.objects.get()
    form = owner_client.get(f"/gateway/{alias.pk}/").context["form"]
    sent = {name: form[name].value() for name in form.fields if form[name].value() is not None} | {"keep_percent": 7}
    config = make_config(make_run(), make_model("vendor/good"), policy_hash="good")
    restored = bind_alias(alias, freeze_config(config.pk), BindingChange(cause=Cause.ALARM))
    answer = owner_client.post(f"/gateway/{alias.pk}/", sent)
    assert answer.status_code == 422
    assert "Nothing was saved: weather got other settings" in read_html(answer)
    shown = answer.context["form"]
    assert [shown[name].value() for name in ("config", "binding", "keep_percent")] == [
        str(config.pk),
        str(restored.pk),
        "7",
    ]
    alias.refresh_from_db()
    assert (alias.config_id, alias.keep_percent) == (config.pk, 50)
    again = {name: shown[name].value() for name in shown.fields if shown[name].value()}
    assert owner_client.post(f"/gateway/{alias.pk}/", again).status_code == 302
    alias.refresh_from_db()
    assert (alias.config_id, alias.keep_percent, alias.bindings.first()) == (config.pk, 7, restored)


def test_alias_form_keeps_retired_model_and_deleted_profile(owner_client: Client, fields: dict[str, object]) -> None:
    SamplingProfile.objects.create(name="cool")
    owner_client.post("/gateway/new/", fields | {"profile": "cool"})
    alias = ModelAlias.objects.get()
    make_model("vendor/first")
    SamplingProfile.objects.get(name="cool").delete()
    Model.objects.filter(pk=alias.model_id).update(retired=True)
    page = owner_client.get(f"/gateway/{alias.pk}/")
    form = page.context["form"]
    assert re.search(rf'<option value="{alias.model_id}" selected>', read_html(page))
    sent = {name: form[name].value() for name in form.fields if form[name].value() is not None} | {"keep_percent": 7}
    assert owner_client.post(f"/gateway/{alias.pk}/", sent).status_code == 302
    saved = ModelAlias.objects.get()
    assert (saved.model_id, saved.profile, saved.keep_percent) == (alias.model_id, "cool", 7)
    assert saved.layers == alias.layers


@pytest.fixture
def measured() -> RunConfig:
    """Configuration of a finished run that can be measured again."""
    SamplingProfile.objects.get_or_create(name="default")
    model = make_model("perfect", provider=make_provider("Simulated", kind=Provider.Kind.SIMULATED))
    return make_measured_config(model)


def read_promotion(client: Client, address: str) -> dict[str, object]:
    """Return the values that the promotion form is filled with."""
    form = client.get(address).context["form"]
    return {name: form[name].value() for name in form.fields if form[name].value() not in (None, False)}


def test_promotion_form_from_decide_saves_record_and_canary(owner_client: Client, measured: RunConfig) -> None:
    address = f"/gateway/promote/?candidate={measured.pk}&scope=demo&want=fastest"
    assert f"/gateway/promote/?candidate={measured.pk}&amp;" in read_html(owner_client.get("/decide/?scope=demo"))
    page = read_html(owner_client.post("/gateway/promote/", read_promotion(owner_client, address), follow=True))
    assert "Roll back to this" not in page
    binding = ModelAlias.objects.get(name="perfect").bindings.get()
    assert (binding.layers, binding.config_id, binding.cause) == (measured.layers, measured.pk, "promoted")
    assert binding.decision == DecisionRecord.objects.get(rule__want="fastest")
    assert binding.canary is not None
    assert list(binding.canary.baseline_runs.all()) == [measured.run]
    assert [rule.kind for rule in binding.canary.rules.all()] == ["drift"]
    assert binding.returns_on_alarm


def test_promotion_form_of_record_rebinds_alias_and_rolls_back(owner_client: Client, measured: RunConfig) -> None:
    old = make_config(make_run(), make_model("vendor/old"), policy_hash="old")
    alias = save_alias(AliasChoice("weather", 0, config=old.pk), owner=None)
    record = save_record(DecideQuery(scope="demo", want="fastest"), owner=None)
    assert f"/gateway/promote/?record={record.pk}" in read_html(owner_client.get(f"/decide/records/{record.pk}/"))
    fields = read_promotion(owner_client, f"/gateway/promote/?record={record.pk}") | {"alias": "weather"}
    del fields["with_canary"]
    page = read_html(owner_client.post("/gateway/promote/", fields, follow=True))
    promoted, first = alias.bindings.all()
    assert (promoted.decision, promoted.canary, promoted.returns_on_alarm) == (record, None, False)
    assert f'value="{first.pk}"' in page
    page = read_html(owner_client.post(f"/gateway/{alias.pk}/roll-back/", {"binding": first.pk}, follow=True))
    assert "Rolled back: weather is served by vendor/old" in page
    page = read_html(owner_client.post(f"/gateway/{alias.pk}/roll-back/", {"binding": 999_999}, follow=True))
    assert "Nothing was changed. weather has no such binding" in page
    assert "decision" not in read_html(owner_client.get("/gateway/")).split("</thead>")[1]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"alias": "a b"}, "letters, digits, dots"),
        ({"alias": ""}, "This field is required"),
        ({"every_hours": "0"}, "greater than or equal to 1"),
        ({"requests_per_month": "1"}, "at least the requests of one run"),
        ({"requests_per_run": ""}, "This field is required"),
    ],
)
def test_promotion_form_with_bad_input_saves_nothing(
    owner_client: Client, measured: RunConfig, change: dict[str, object], sentence: str
) -> None:
    fields = read_promotion(owner_client, f"/gateway/promote/?candidate={measured.pk}")
    answer = owner_client.post("/gateway/promote/", fields | change)
    assert answer.status_code == 422
    assert sentence in read_html(answer)
    assert not ModelAlias.objects.exists()
    assert not DecisionRecord.objects.exists()
    assert not Schedule.objects.exists()


def test_promotion_form_without_possible_canary_says_why(owner_client: Client, measured: RunConfig) -> None:
    RunConfig.objects.filter(pk=measured.pk).update(policy_hash="before")
    address = f"/gateway/promote/?candidate={measured.pk}"
    assert "A canary is not possible. A preset, a profile, the provider" in read_html(owner_client.get(address))
    fields = read_promotion(owner_client, address)
    assert "A canary is not possible" in read_html(
        owner_client.post("/gateway/promote/", fields | {"with_canary": "on"})
    )
    owner_client.post("/gateway/promote/", fields)
    assert ModelAlias.objects.get().bindings.get().canary is None
    Run.objects.filter(pk=measured.run_id).update(request={"model": 1})
    assert f"The request of run {measured.run_id} cannot be read" in read_html(owner_client.get(address))
    assert owner_client.get("/gateway/promote/?candidate=999999").status_code == 404


def test_alias_page_deletes_alias_after_confirmation(owner_client: Client, fields: dict[str, object]) -> None:
    owner_client.post("/gateway/new/", fields)
    owner_client.post("/gateway/new/", fields | {"name": "chained", "fallbacks": "weather"})
    alias = ModelAlias.objects.get(name="weather")
    page = read_html(owner_client.get(f"/gateway/{alias.pk}/delete/"))
    assert "Delete the alias weather?" in page
    assert "fallback of chained" in page
    assert ModelAlias.objects.count() == 2
    owner_client.post(f"/gateway/{alias.pk}/delete/")
    assert ModelAlias.objects.get().name == "chained"


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
def test_alias_form_names_bad_input(
    owner_client: Client, fields: dict[str, object], change: dict[str, object], sentence: str
) -> None:
    answer = owner_client.post("/gateway/new/", fields | change)
    assert answer.status_code == 422
    assert sentence in read_html(answer)
    assert not ModelAlias.objects.exists()


def test_alias_form_refuses_name_that_exists(owner_client: Client, fields: dict[str, object]) -> None:
    owner_client.post("/gateway/new/", fields)
    assert "The alias weather already exists" in read_html(owner_client.post("/gateway/new/", fields))


def test_trace_pages_list_by_alias_and_show_bodies(owner_client: Client) -> None:
    kept = make_gateway_trace(alias="weather", client_request=b'{"q": "<b>"}', simulated=True)
    make_gateway_trace(alias="other", status=502, code="invalid_tool_call", sentence="Not valid.")
    page = read_html(owner_client.get("/gateway/traces/?alias=weather"))
    assert f"/gateway/traces/{kept.pk}/" in page
    assert "invalid_tool_call" not in page
    shown = read_html(owner_client.get(f"/gateway/traces/{kept.pk}/"))
    assert "&lt;b&gt;" in shown
    assert "simulated" in shown
    assert owner_client.get("/gateway/traces/999999/").status_code == 404


def test_trace_list_pages_by_last_trace(owner_client: Client) -> None:
    for _ in range(101):
        make_gateway_trace()
    first = owner_client.get("/gateway/traces/").context["page"]
    second = owner_client.get(f"/gateway/traces/?before={first.next_before}").context["page"]
    assert (len(first.traces), len(second.traces), second.next_before) == (100, 1, None)


def test_trace_page_creates_draft_of_test_case_once(owner_client: Client) -> None:
    logged = build_logged()
    trace = make_gateway_trace(
        client_request=json.dumps(logged["request"]).encode(), client_response=json.dumps(logged["response"]).encode()
    )
    assert "A draft was made." in read_html(owner_client.post(f"/gateway/traces/{trace.pk}/draft/", follow=True))
    assert TrafficDraft.objects.get().title.startswith("get_weather")
    assert "is a draft already" in read_html(owner_client.post(f"/gateway/traces/{trace.pk}/draft/", follow=True))
    assert AuditEntry.objects.get().action == AuditEntry.Action.ADDED


@pytest.mark.parametrize("fields", [{"stream": True}, {"dialect": "messages"}])
def test_trace_page_creates_draft_from_stored_traffic_line(owner_client: Client, fields: dict[str, object]) -> None:
    line = json.dumps(build_logged()).encode()
    trace = make_gateway_trace(client_request=b"{}", client_response=b"data: {}", traffic_line=line, **fields)
    assert "Make a draft of a test case" in read_html(owner_client.get(f"/gateway/traces/{trace.pk}/"))
    assert "A draft was made." in read_html(owner_client.post(f"/gateway/traces/{trace.pk}/draft/", follow=True))


@pytest.mark.parametrize("fields", [{}, {"stream": True}, {"dialect": "messages"}, {"status": 502}])
def test_trace_page_has_no_draft_button_without_usable_bodies(owner_client: Client, fields: dict[str, object]) -> None:
    bodies = {"client_request": b"{}", "client_response": b"{}"} if fields else {}
    trace = make_gateway_trace(**bodies, **fields)
    assert "Make a draft of a test case" not in read_html(owner_client.get(f"/gateway/traces/{trace.pk}/"))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "what was kept of it cannot be read as recorded traffic"),
        ({"client_request": b"{}", "client_response": b"x", "stream": True}, "No draft can be created"),
        ({"client_request": b"{}", "client_response": b"cut"}, "the record is not a JSON object"),
        ({"client_request": b"{}", "client_response": b"{}"}, "the record has no answer"),
    ],
)
def test_trace_page_says_why_no_draft_is_possible(
    owner_client: Client, fields: dict[str, object], sentence: str
) -> None:
    trace = make_gateway_trace(**fields)
    response = owner_client.post(f"/gateway/traces/{trace.pk}/draft/", follow=True)
    assert sentence in read_html(response)
    assert response.redirect_chain == [(f"/gateway/traces/{trace.pk}/", 302)]
    assert not TrafficDraft.objects.exists()
