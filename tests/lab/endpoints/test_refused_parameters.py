"""Refused parameters of a run: later runs omit them only after a user adopts them as a workaround of the model."""

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import make_model, make_run
from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from tests.lab.worker.test_refused_parameters import ERROR_MESSAGE, RefusingModel
from tests.page_html import read_html
from toolbench.lab.endpoints.refused_parameters import adopt_omissions, get_suggested_omissions
from toolbench.lab.models import Model, Preset, RefusedParameter, Run
from toolbench.lab.runs import control
from toolbench.providers.scripted_server import ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)


def run_to_end(model: Model, strategy: str = "production") -> Run:
    run = launch_run(model, scenarios=("happy_path",), strategies=(strategy,), trials=1)
    run_worker_session(model)
    return run


def test_adopt_omissions_saves_refused_parameter_as_workaround(owner_client: Client) -> None:
    refusing_model = RefusingModel("tool_choice")
    with ScriptedServer(refusing_model) as scripted:
        model = make_scripted_model(scripted)
        run = run_to_end(model)
        trial = run.trials.get()

        page = read_html(owner_client.get(f"/models/{model.pk}/"))
        assert "Refused parameters" in page
        assert f"run {run.pk}" in page
        assert "chose by its own default" in read_html(owner_client.get(f"/runs/{run.pk}/"))
        trial_page = read_html(owner_client.get(f"/trials/{trial.pk}/"))
        assert "after the endpoint refused it" in trial_page
        assert "chose by its own default" in trial_page

        run_to_end(model)
        assert len(refusing_model.refused) == 2, "a later run sends the parameter again"

        answer = read_html(owner_client.post(f"/models/{model.pk}/left-out/", follow=True))
        assert "is a workaround of the model now" in answer
        assert "Refused parameters" not in answer
        later = run_to_end(model).trials.get()

    assert len(refusing_model.refused) == 2
    assert (later.outcome, later.requests) == ("pass", 3)
    assert later.left_out == [{"name": "tool_choice", "why": "The settings leave it out.", "known": True}]
    model.refresh_from_db()
    (name,) = model.workarounds
    assert Preset.objects.get(name=name).patch == {"left_out_parameters": ["tool_choice"]}
    assert name in read_html(owner_client.get("/models/"))


def test_adopt_omissions_adds_later_refused_parameters(owner_client: Client) -> None:
    refusing_model = RefusingModel("tool_choice")
    with ScriptedServer(refusing_model) as scripted:
        model = make_scripted_model(scripted)
        run_to_end(model)
        owner_client.post(f"/models/{model.pk}/left-out/")
        refusing_model.names = ("tool_choice", "parallel_tool_calls")
        run_to_end(model)
        model.refresh_from_db()
        assert [offer.name for offer in get_suggested_omissions(model)] == ["parallel_tool_calls"]
        owner_client.post(f"/models/{model.pk}/left-out/")

    model.refresh_from_db()
    (name,) = model.workarounds
    assert Preset.objects.get(name=name).patch == {"left_out_parameters": ["tool_choice", "parallel_tool_calls"]}


def test_adopt_omissions_restores_an_archived_preset() -> None:
    model = make_model()
    refusal = {"provider": model.provider, "model_name": model.name, "name": "seed", "why": "No seed."}
    RefusedParameter.objects.create(**refusal, run=make_run(), created_at=timezone.now())
    preset = adopt_omissions(model.pk)
    Preset.objects.filter(pk=preset.pk).update(archived_at=timezone.now())
    Model.objects.update(workarounds=[])

    adopt_omissions(model.pk)

    preset.refresh_from_db()
    assert preset.archived_at is None


def test_adopt_omissions_without_refusal_reports_none(owner_client: Client) -> None:
    model = make_model("acme/one")

    answer = read_html(owner_client.post(f"/models/{model.pk}/left-out/", follow=True))

    assert "No run has found a parameter" in answer
    assert owner_client.post("/models/987654/left-out/").status_code == 404


def test_get_suggested_omissions_of_deleted_run_is_empty() -> None:
    with ScriptedServer(RefusingModel("tool_choice")) as scripted:
        model = make_scripted_model(scripted)
        run = run_to_end(model)
    assert [(offer.name, offer.why) for offer in get_suggested_omissions(model)] == [
        ("tool_choice", ERROR_MESSAGE.format("tool_choice"))
    ]

    control.delete_run(run.pk)

    assert get_suggested_omissions(model) == ()


def test_trial_exports_contain_omitted_parameters(owner_client: Client) -> None:
    with ScriptedServer(RefusingModel("tool_choice")) as scripted:
        run = run_to_end(make_scripted_model(scripted))

    assert b'"tool_choice"' in owner_client.get(f"/runs/{run.pk}/trials.json").getvalue()
    assert b"tool_choice" in owner_client.get(f"/runs/{run.pk}/trials.csv").getvalue()
