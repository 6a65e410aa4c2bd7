import pytest
from django.core.management import CommandError, call_command

from tests.lab.benches import launched, scripted_model, work
from toolbench.lab.models import Provider, Run
from toolbench.lab.planning.run_request import LaunchRefused
from toolbench.lab.runs.resending import resend
from toolbench.providers.scripted import ScriptedProvider

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_stored_plan_is_sent_again_byte_for_byte(scripted: ScriptedProvider) -> None:
    model = scripted_model(scripted)
    trial = launched(model, trials=2, instance_kind="drawn").trials.order_by("pk").last()
    assert trial is not None
    work(model)
    trial.refresh_from_db()
    first = trial.steps.filter(kind="exchange").first()
    run = resend(trial.pk)
    work(model)
    again = run.trials.get()
    sent = again.steps.filter(kind="exchange").first()
    assert first is not None
    assert sent is not None
    assert bytes(sent.body.request) == bytes(first.body.request)
    assert (again.plan_hash, again.seed, again.outcome) == (trial.plan_hash, trial.seed, trial.outcome)
    assert (run.repeat_of_id, run.trial_count, run.purpose) == (trial.run_id, 1, "resend")


def test_the_command_says_where_to_look(scripted: ScriptedProvider, capsys: pytest.CaptureFixture[str]) -> None:
    trial = launched(scripted_model(scripted)).trials.first()
    assert trial is not None
    call_command("resend", str(trial.pk))
    run = Run.objects.get(purpose="resend")
    assert capsys.readouterr().out == f"Run {run.pk}: /runs/{run.pk}/\n"


def test_a_trial_that_is_gone_or_without_a_provider_cannot_be_sent(scripted: ScriptedProvider) -> None:
    trial = launched(scripted_model(scripted)).trials.first()
    assert trial is not None
    Provider.objects.all().delete()
    with pytest.raises(LaunchRefused, match="scripted was deleted"):
        resend(trial.pk)
    with pytest.raises(CommandError, match="no trial 987654"):
        call_command("resend", "987654")
