from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import make_cell, make_config, make_model, make_provider, make_run
from toolbench.lab.models import Cell, Model, Probe
from toolbench.lab.probes.capabilities import effective_of

pytestmark = pytest.mark.django_db


def a_probe(model: Model, *, days: float = 0, **fields: object) -> Probe:
    defaults = {"kind": "first_use", "state": "done", "ok": True, "finished_at": timezone.now() - timedelta(days=days)}
    return Probe.objects.create(model=model, provider=model.provider, **(defaults | fields))


def test_nothing_is_known_of_a_model_nobody_has_asked() -> None:
    assert effective_of(make_model()).capabilities.known() == {}


def test_a_provider_declares_and_its_model_overrides() -> None:
    provider = make_provider("OpenAI", template="openai")
    model = make_model("gpt", provider=provider, capabilities={"max_tools": 12})

    effective = effective_of(model)

    assert effective.capabilities.max_tools == 12
    assert effective.capabilities.supports_strict is True
    assert effective.origins["max_tools"].who == "a person"
    assert effective.origins["supports_strict"].who == "OpenAI's API reference"


def test_a_declaration_that_cannot_be_read_is_left_out() -> None:
    assert effective_of(make_model(capabilities={"supports_flight": True})).capabilities.known() == {}


def test_what_a_probe_of_another_version_learned_is_left_out_where_it_cannot_be_read(owner_client: Client) -> None:
    model = make_model()
    probe = a_probe(model, learned={"supports_flight": True})

    assert effective_of(model).capabilities.known() == {}
    assert owner_client.get(f"/probes/{probe.pk}/").status_code == 200


def test_a_probe_counts_for_seven_days() -> None:
    model = make_model()
    a_probe(model, days=7.1, learned={"supports_tool_use": False})
    assert effective_of(model).capabilities.supports_tool_use is None

    fresh = a_probe(model, days=6.9, learned={"supports_tool_use": True})
    assert effective_of(model).capabilities.supports_tool_use is True
    assert effective_of(model).origins["supports_tool_use"].who == f"probe {fresh.pk}"


def test_a_probe_that_could_not_be_told_never_counts() -> None:
    model = make_model()
    a_probe(model, ok=False, learned={"supports_tool_use": False})

    assert effective_of(model).capabilities.known() == {}


def test_the_latest_probe_of_each_kind_counts() -> None:
    model = make_model()
    a_probe(model, days=3, kind="conformance", learned={"supports_tool_use": False, "ids": "unique"})
    a_probe(model, days=2, kind="conformance", learned={"supports_tool_use": True})

    assert effective_of(model).capabilities.known() == {"supports_tool_use": True}


def test_the_stability_of_json_is_measured_on_stored_trials_and_dated() -> None:
    model = make_model()
    run = make_run()
    cell = make_cell(make_config(run, model=model, method="text_json"))
    Cell.objects.filter(pk=cell.pk).update(calling_turns=40, parse_error_turns=6)

    told = effective_of(model).origins["json_stability"]

    assert effective_of(model).capabilities.json_stability == "low"
    assert (told.source, told.who, told.at) == ("measured", "6 of 40 turns could not be read", run.created_at)


def test_native_trials_say_nothing_of_json_in_text() -> None:
    model = make_model()
    cell = make_cell(make_config(make_run(), model=model, method="native"))
    Cell.objects.filter(pk=cell.pk).update(calling_turns=40, parse_error_turns=40)

    assert effective_of(model).capabilities.json_stability is None
