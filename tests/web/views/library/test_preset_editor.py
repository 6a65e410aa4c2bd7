"""Presets: creation, copies, versions, comparison, deletion and use in runs."""

from typing import Any

import pytest
from django.test import Client

from tests.factories import make_model
from tests.lab.scripted_runs import run_worker_session
from tests.lab.simulated_runs import get_simulated_model, serve_simulated_models
from tests.page_html import read_html
from tests.web.views.library.test_profiles import read_form_values
from toolbench.lab.builtin_data import load_builtin_data
from toolbench.lab.models import LibraryVersion, Model, Preset, Run

pytestmark = pytest.mark.django_db

SHORT: dict[str, Any] = {"name": "short", "set_max_turns": "3"}


def launch_with_preset(client: Client, model: Model) -> Run:
    fields = read_form_values(client, "/runs/new/") | {"methods": ["native"], "probe_unknown": ""}
    chosen = {"models": [model.pk], "strategies": ["short"], "scenarios": ["happy_path"], "trials": "1"}
    response = client.post("/runs/new/", fields | chosen)
    assert response.status_code == 302, response.context["form"].errors
    run_worker_session(model)
    return Run.objects.order_by("pk").last() or Run()


@pytest.mark.django_db(transaction=True)
def test_preset_versions_are_frozen_by_runs_and_compared(owner_client: Client) -> None:
    with serve_simulated_models():
        model = get_simulated_model("perfect")
        owner_client.post("/presets/new/", SHORT)
        first = launch_with_preset(owner_client, model)
        edited = {"set_max_turns": "5", "set_llm_options_defaults": '{"temperature": 0.1}'}
        owner_client.post("/presets/short/", read_form_values(owner_client, "/presets/short/") | edited)
        second = launch_with_preset(owner_client, model)
    frozen = [dict(run.configs.get().layers)["preset short"] for run in (first, second)]
    assert frozen == [{"max_turns": 3}, {"max_turns": 5, "llm_options_defaults": {"temperature": 0.1}}]
    response = owner_client.get("/presets/short/")
    assert [(version.number, version.runs) for version in response.context["page"].versions] == [(2, 1), (1, 1)]
    names = [setting.name for setting in response.context["page"].difference.settings]
    assert names == ["llm_options_defaults.temperature", "max_turns"]
    compared = read_html(owner_client.get(f"/compare/?a_run={first.pk}&b_run={second.pk}&demo=1"))
    assert f"run {first.pk}" in compared
    owner_client.post("/presets/short/delete/")
    assert Preset.objects.get(name="short").archived_at is not None
    assert 'value="short"' not in read_html(owner_client.get("/runs/new/"))


def test_preset_form_reads_words_lists_and_json(owner_client: Client) -> None:
    typed = SHORT | {
        "set_tool_failure_policy": "tolerated",
        "set_validate_arguments": "false",
        "set_argument_repairs": "trailing_commas",
        "set_tool_denylist": "[]",
        "set_tool_use_mode": "null",
        "set_tool_choice": '{"type": "auto"}',
        "set_fix_empty_final_user_text": "[go on]",
    }
    response = owner_client.post("/presets/new/", typed)
    assert response.status_code == 302, response.context["form"].errors
    patch = Preset.objects.get().patch
    assert patch == {
        "max_turns": 3,
        "tool_failure_policy": "tolerated",
        "validate_arguments": False,
        "argument_repairs": ["trailing_commas"],
        "tool_denylist": [],
        "tool_use_mode": None,
        "tool_choice": {"type": "auto"},
        "fix_empty_final_user_text": "[go on]",
    }
    owner_client.post("/presets/short/", read_form_values(owner_client, "/presets/short/"))
    assert LibraryVersion.objects.count() == 1  # saving the form unchanged adds no version


def test_preset_form_copies_every_builtin_preset_unchanged(owner_client: Client) -> None:
    load_builtin_data()
    for preset in Preset.objects.filter(builtin=True):
        response = owner_client.post(
            "/presets/new/", read_form_values(owner_client, f"/presets/new/?copy={preset.name}")
        )
        assert response.status_code == 302, (preset.name, response.context["form"].errors)
        assert Preset.objects.get(name=f"{preset.name}_copy").patch == preset.patch


def test_preset_page_of_builtin_preset_is_read_only(owner_client: Client) -> None:
    load_builtin_data()
    assert "Save version" not in read_html(owner_client.get("/presets/infrastructure/"))
    assert owner_client.post("/presets/infrastructure/", {"set_max_turns": "1"}).status_code == 422
    assert owner_client.post("/presets/infrastructure/delete/").status_code == 404


def test_preset_page_names_preset_as_origin_of_settings(owner_client: Client) -> None:
    model = make_model()
    owner_client.post("/presets/new/", SHORT)
    effective = owner_client.get(f"/presets/short/?model={model.pk}").context["page"].effective
    assert [key.parts for key in effective.keys if key.name == "max_turns"] == [(("3", "preset short"),)]
    assert effective.unchanged > 10


def test_preset_delete_refuses_workaround_of_model(owner_client: Client) -> None:
    owner_client.post("/presets/new/", SHORT)
    make_model(workarounds=["short"])
    text = read_html(owner_client.post("/presets/short/delete/", follow=True))
    assert "The preset is a workaround of vendor/model-a" in text
    Model.objects.update(workarounds=[])
    owner_client.post("/presets/short/delete/")
    assert not Preset.objects.exists()


def test_preset_page_counts_adopted_preset_as_version(owner_client: Client) -> None:
    Preset.objects.create(name="probe-x", patch={"max_turns": 2})
    form = read_form_values(owner_client, "/presets/probe-x/")
    owner_client.post("/presets/probe-x/", form | {"set_max_turns": "4"})
    versions = owner_client.get("/presets/probe-x/").context["page"].versions
    assert [(version.number, version.content["patch"]) for version in versions] == [
        (2, {"max_turns": 4}), (1, {"max_turns": 2}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"name": "raw"}, "name"),
        ({"name": "Wire-Standard"}, "name"),
        ({"name": "infrastructure"}, "name"),
        ({"set_max_turns": "0"}, "set_max_turns"),
        ({"set_max_turns": "many"}, "set_max_turns"),
        ({"set_max_turns": "9" * 5000}, "set_max_turns"),
        ({"set_request_overrides": "[1]"}, "set_request_overrides"),
        ({"set_request_overrides": '{"a": "\\u0000"}'}, "set_request_overrides"),
        ({"set_request_overrides": '{"a": 1e999}'}, "set_request_overrides"),
        ({"set_tool_id_pattern": "[a"}, "set_tool_id_pattern"),
        ({"set_paths": "native, telepathy"}, "set_paths"),
        ({"set_response_transforms": "nobody_knows"}, "set_response_transforms"),
        ({"set_argument_repairs": "nobody_knows"}, "set_argument_repairs"),
        ({"set_tool_use_mode": "perhaps"}, "set_tool_use_mode"),
        ({"set_max_turns": ""}, "__all__"),
    ],
)
def test_preset_form_names_wrong_setting_and_saves_nothing(
    owner_client: Client, typed: dict[str, str], field: str
) -> None:
    response = owner_client.post("/presets/new/", SHORT | typed)
    assert response.status_code == 422
    assert set(response.context["form"].errors) == {field}
    assert not Preset.objects.exists()


@pytest.mark.parametrize("name", ["nobody", "%00a", "%27"])
def test_preset_form_copy_of_unknown_preset_is_404(owner_client: Client, name: str) -> None:
    assert owner_client.get(f"/presets/new/?copy={name}").status_code == 404
