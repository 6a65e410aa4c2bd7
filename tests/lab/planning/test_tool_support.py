import pytest

from tests.lab.planning.test_auto_method import answer_probes_and_tasks, point_model_to, run_waiting_probe
from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from toolbench.lab.date_texts import render_day
from toolbench.lab.models import Model, Probe, Trial
from toolbench.lab.planning.tool_support import describe_support
from toolbench.lab.results.trial.page import get_trial_page
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.providers.scripted_server import ScriptedServer, error_reply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def model(scripted: ScriptedServer) -> Model:
    return make_scripted_model(scripted)


def test_tool_support_names_probe_that_decided_on_trial_page(model: Model) -> None:
    with ScriptedServer(answer_probes_and_tasks) as provider:
        point_model_to(model, provider)
        run = launch_run(model, methods=("auto",))
        config = run_waiting_probe(model, run)
        run_worker_session(model)

    probe = Probe.objects.get()
    assert config.probe == probe
    assert (config.support["value"], config.support["source"], config.support["ok"]) == (True, "probed", True)
    trial = Trial.objects.select_related("config").all()[0]
    assert trial.config.probe_id == probe.pk
    assert get_trial_page(trial.pk, TrialFilter()).support == (
        f"Tool calls come back in their own field. Yes: probed, probe {probe.pk}, {render_day(config.support['at'])}."
    )


def test_describe_support_names_error_of_inconclusive_probe(model: Model) -> None:
    with ScriptedServer(lambda seen: error_reply(401, "no")) as provider:
        point_model_to(model, provider)
        config = run_waiting_probe(model, launch_run(model, methods=("auto",)))

    assert config.probe == Probe.objects.get()
    assert (config.support["value"], config.support["ok"], config.support["error"]) == (None, False, "authentication")
    assert "Inconclusive (authentication): probed, probe" in describe_support(config.support)


def test_tool_support_of_named_method_is_declared_or_unknown(model: Model) -> None:
    assert describe_support(launch_run(model).configs.get().support).startswith("Tool support was unknown")

    model.capabilities = {"tools_field": "dropped"}
    model.save()
    config = launch_run(model, methods=("text_json",)).configs.get()
    assert (config.probe, config.support["field"], config.support["source"]) == (None, "tools_field", "declared")
