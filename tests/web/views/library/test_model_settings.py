"""Settings of a model: versions, and the values that a run freezes."""

from typing import Any

import pytest
from django.test import Client

from tests.factories import make_cell, make_config, make_model, make_run, make_trial
from tests.lab.scripted_runs import launch_run
from tests.page_html import read_html
from tests.web.views.library.test_profiles import read_form_values
from toolbench.lab.builtin_data import load_builtin_data
from toolbench.lab.endpoints.capabilities import get_model_capabilities
from toolbench.lab.metrics.cost import sum_costs
from toolbench.lab.models import AuditEntry, LibraryVersion, Model, Preset, RunConfig, Trial

pytestmark = pytest.mark.django_db

PRICE = {"input": "2", "output": "10", "date": "2026-11-01", "source": "contract 17"}
STORED = {"input": 2.0, "output": 10.0, "date": "2026-11-01", "source": "contract 17"}


def test_model_settings_form_saves_version_with_author(owner_client: Client) -> None:
    model = make_model()
    Preset.objects.create(name="mine", patch={"max_turns": 3})
    typed = PRICE | {"capabilities": '{"supports_tool_use": false}', "workarounds": ["mine"]}
    path = f"/models/{model.pk}/settings/"
    assert owner_client.post(path, read_form_values(owner_client, path) | typed).status_code == 302
    model.refresh_from_db()
    assert (model.price, model.workarounds) == (STORED, ["mine"])
    assert get_model_capabilities(model).capabilities.supports_tool_use is False
    newest = LibraryVersion.objects.first()
    assert newest is not None
    assert (newest.number, newest.username) == (2, "owner")
    assert AuditEntry.objects.get().subject == "settings of model vendor/model-a, version 2"
    page = owner_client.get(path)
    changed = {setting.name for setting in page.context["page"].difference.settings}
    assert changed >= {"price.input", "price.source", "supports_tool_use", "workarounds"}
    assert "contract 17" in read_html(page)
    assert "$2.0 in" in read_html(owner_client.get(f"/models/{model.pk}/"))


def test_model_settings_form_after_conflict_is_saved_when_sent_again(owner_client: Client) -> None:
    path = f"/models/{make_model().pk}/settings/"
    read_first = read_form_values(owner_client, path) | PRICE
    owner_client.post(path, read_first)
    refused = owner_client.post(path, read_first | {"input": "3"})
    assert refused.status_code == 422
    assert "owner saved version 2 meanwhile" in read_html(refused)
    form = refused.context["form"]
    again = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    assert owner_client.post(path, again).status_code == 302
    assert Model.objects.get().price["input"] == 3
    assert LibraryVersion.objects.count() == 3


def test_launch_run_freezes_price_for_sum_costs(owner_client: Client) -> None:
    load_builtin_data()
    model = make_model(price=STORED)
    launched = launch_run(model, profiles=("default",), trials=1).configs.get()
    assert launched.price == STORED
    config = make_config(make_run(), model, price=launched.price)
    make_trial(make_cell(config), input_tokens=1_000_000, output_tokens=100_000)
    Model.objects.filter(pk=model.pk).update(price={})
    paid = sum_costs(Trial.objects.filter(config=config))[config.pk]
    assert paid.dollars == pytest.approx(3.0)
    assert paid.price_lists == ("price of 2026-11-01, contract 17",)


def test_sum_costs_ignores_unreadable_price() -> None:
    config = make_config(make_run(), price={"input": "much", "output": None})
    make_trial(make_cell(config))
    assert sum_costs(Trial.objects.filter(config=config))[config.pk].known == 0
    assert RunConfig.objects.count() == 1


def test_load_builtin_data_keeps_workarounds_of_person(owner_client: Client) -> None:
    load_builtin_data()
    model = Model.objects.filter(provider__kind="simulated").exclude(workarounds=[])[0]
    path = f"/models/{model.pk}/settings/"
    owner_client.post(
        path, {name: value for name, value in read_form_values(owner_client, path).items() if name != "workarounds"}
    )
    load_builtin_data()
    model.refresh_from_db()
    assert model.workarounds == []


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"input": "-1"}, "input"),
        ({"output": "nan"}, "output"),
        ({"source": ""}, "source"),
        ({"date": "tomorrow"}, "date"),
        ({"date": "2999-01-01"}, "date"),
        ({"workarounds": ["nobody"]}, "workarounds"),
        ({"capabilities": "["}, "capabilities"),
        ({"capabilities": '{"can_fly": true}'}, "capabilities"),
        ({"capabilities": '{"supports_tool_use": "yes"}'}, "capabilities"),
    ],
)
def test_model_settings_form_names_wrong_setting(owner_client: Client, typed: dict[str, Any], field: str) -> None:
    model = make_model()
    response = owner_client.post(f"/models/{model.pk}/settings/", PRICE | {"read_number": "1"} | typed)
    assert response.status_code == 422
    assert set(response.context["form"].errors) == {field}
    assert not LibraryVersion.objects.exists()
