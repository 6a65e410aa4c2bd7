"""Pages of presets, policy, simulated models and profiles."""

import pytest
from django.test import Client

from tests.page_html import read_html
from toolbench.engine.policy.presets import list_preset_names
from toolbench.lab import builtin_data
from toolbench.lab.models import Model, Preset

pytestmark = pytest.mark.django_db


def test_presets_page_lists_every_preset_with_its_settings(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    Preset.objects.create(name="mine", patch={"max_turns": 6, "serial_calls": True})
    response = owner_client.get("/presets/")
    assert len(response.context["presets"]) == len(list_preset_names()) + 1
    text = read_html(response)
    assert all(f'id="{name}"' in text for name in list_preset_names())
    own_row = text.partition('id="mine"')[2].partition("</tr>")[0]
    assert [name in own_row for name in ("yours", "max_turns", "serial_calls")] == [True] * 3


def test_presets_page_links_models_that_each_is_a_workaround_of(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    Preset.objects.create(name="mine", patch={"max_turns": 6})
    models = list(Model.objects.order_by("name")[:4])
    for model in models:
        Model.objects.filter(pk=model.pk).update(workarounds=["mine"])
    assert "/presets/mine/" in _find_last_cell(owner_client)
    Model.objects.filter(pk=models[0].pk).update(workarounds=[])
    last_cell = _find_last_cell(owner_client)
    assert all(f"/models/{model.pk}/" in last_cell and model.name in last_cell for model in models[1:])


def _find_last_cell(client: Client) -> str:
    """Return the last cell of the preset "mine" on the page of presets."""
    own_row = read_html(client.get("/presets/")).partition('id="mine"')[2].partition("</tr>")[0]
    return own_row.rpartition("<td")[2]


def test_policy_page_names_origins(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    model = Model.objects.get(name="deepseek/deepseek-v3.2:nitro")
    text = read_html(owner_client.get(f"/policy/?model={model.pk}&scenario=long_arguments_guard"))
    assert "workaround deepseek_openrouter_compat" in text
    assert "engine default" in text


@pytest.mark.parametrize("query", ["", "?model=x", "?model=999999", "?strategy=%00", "?scenario=%3Cscript%3E"])
def test_policy_page_ignores_bad_query(owner_client: Client, query: str) -> None:
    response = owner_client.get(f"/policy/{query}")
    assert response.status_code == 200
    assert b"<script>" not in response.content


@pytest.mark.django_db
def test_personas_page_says_models_are_not_real(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    text = read_html(owner_client.get("/demo/personas/"))
    assert "Nothing here is a real model." in text
    assert "reliable-90" in text
    assert "True rates of <code>chat_only</code>: 0.0 raw, 0.0 production." in " ".join(text.split())


@pytest.mark.django_db
def test_profiles_page_lists_profiles_with_options(owner_client: Client) -> None:
    assert "No profile is loaded" in read_html(owner_client.get("/profiles/"))
    builtin_data.load_builtin_data()
    text = read_html(owner_client.get("/profiles/"))
    assert "deepseek_v3_2_local_recommended" in text
    assert "temperature 1.0" in text
