import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_trial
from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from toolbench.lab.models import Model, Probe, Provider, Run
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.planning.auto_method import decide_all_waiting_methods
from toolbench.lab.planning.run_request import LaunchError
from toolbench.lab.runs import control
from toolbench.lab.runs.action_checks import count_repeated_trials
from toolbench.lab.runs.repeat import resend_trial
from toolbench.providers.scripted_server import ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)


def test_resend_trial_sends_identical_request(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    trial = launch_run(model, trials=2, instance_kind="drawn").trials.order_by("pk").last()
    assert trial is not None
    run_worker_session(model)
    trial.refresh_from_db()
    first = trial.steps.filter(kind="exchange").first()
    run = resend_trial(trial.pk)
    run_worker_session(model)
    again = run.trials.get()
    resent = again.steps.filter(kind="exchange").first()
    assert first is not None
    assert resent is not None
    assert bytes(resent.body.request) == bytes(first.body.request)
    assert (again.plan_hash, again.seed, again.outcome) == (trial.plan_hash, trial.seed, trial.outcome)
    assert (run.repeat_of_id, run.trial_count, run.purpose) == (trial.run_id, 1, "resend")


def test_resend_command_prints_path_of_run(scripted: ScriptedServer, capsys: pytest.CaptureFixture[str]) -> None:
    trial = launch_run(make_scripted_model(scripted)).trials.first()
    assert trial is not None
    call_command("resend", str(trial.pk))
    run = Run.objects.get(purpose="resend")
    assert capsys.readouterr().out == f"Run {run.pk}: /runs/{run.pk}/\n"


def test_resend_unknown_trial_or_deleted_provider_is_refused(scripted: ScriptedServer) -> None:
    trial = launch_run(make_scripted_model(scripted)).trials.first()
    assert trial is not None
    Provider.objects.all().delete()
    with pytest.raises(LaunchError, match="scripted was deleted"):
        resend_trial(trial.pk)
    with pytest.raises(CommandError, match="no trial 987654"):
        call_command("resend", "987654")


def test_resend_trial_of_imported_or_deleted_run_is_refused() -> None:
    imported = make_trial(make_cell(make_config(make_run(imported=True))))
    deleted = make_trial(make_cell(make_config(make_run(deleted_at=timezone.now()))))
    with pytest.raises(LaunchError, match="was imported"):
        resend_trial(imported.pk)
    with pytest.raises(LaunchError, match="no trial"):
        resend_trial(deleted.pk)


def test_start_repeat_counts_sent_not_applicable_trials(settings: Settings) -> None:
    settings.CONFIRM_ABOVE_REQUESTS = 10
    model = make_model(provider=make_provider(max_attempts=1))
    run = launch_run(model, trials=10, overrides={"max_turns": 1})
    run.trials.update(state="done", outcome="na", execution=1)
    run.trials.filter(index__gt=8).update(execution=0)
    with pytest.raises(PaidRequestsUnconfirmedError, match="up to 24 requests to Example"):
        control.start_repeat(run.pk, owner=None)
    again = control.start_repeat(run.pk, owner=None, confirmed_requests=24)
    assert again.trials.filter(state="queued").count() == sum(count_repeated_trials(run).values()) == 8


def test_start_repeat_of_sequential_run_has_its_largest_cell_size() -> None:
    run = launch_run(make_model(), trials=50, until={"rule": "width", "width": 10})
    again = control.start_repeat(run.pk, owner=None, confirmed_requests=10_000)
    assert (run.trials_per_cell, again.trials_per_cell, again.until) == (50, 10, {})


def test_start_repeat_of_unprobed_run_probes_and_counts_requests(settings: Settings) -> None:
    settings.CONFIRM_ABOVE_REQUESTS = 10
    model = make_model(provider=make_provider(max_attempts=1))
    run = launch_run(model, trials=10, probe_unknown=True, overrides={"max_turns": 1})
    control.cancel_run(run.pk)
    Probe.objects.all().delete()

    with pytest.raises(PaidRequestsUnconfirmedError, match="up to 35 requests to Example"):
        control.start_repeat(run.pk, owner=None, confirmed_requests=34)
    again = control.start_repeat(run.pk, owner=None, confirmed_requests=35)

    assert Probe.objects.get().why == f"Run {again.pk} uses this model for the first time."
    assert decide_all_waiting_methods() == 0
    assert again.configs.get().awaits_probe


def test_start_repeat_of_known_model_queues_no_probe() -> None:
    model = make_model()
    run = launch_run(model, probe_unknown=True)
    control.cancel_run(run.pk)
    Probe.objects.all().delete()
    Model.objects.filter(pk=model.pk).update(capabilities={"supports_tool_use": True})

    again = control.start_repeat(run.pk, owner=None)

    assert not Probe.objects.exists()
    assert decide_all_waiting_methods() == 1
    assert not again.configs.get().awaits_probe


def test_start_noise_repeat_of_such_a_repeat_confirms_the_original_run() -> None:
    model = make_model(provider=make_provider(max_attempts=2))
    run = launch_run(model, trials=300, overrides={"max_turns": 4}, request_cap=100)
    repeat = control.start_noise_repeat(run.pk, owner=None)
    Run.objects.filter(pk=run.pk).update(request_cap=None)
    with pytest.raises(PaidRequestsUnconfirmedError, match="up to 3,600 requests to Example"):
        control.start_noise_repeat(repeat.pk, owner=None)
