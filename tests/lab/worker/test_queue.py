import pytest

from tests.factories import make_model
from tests.lab.scripted_runs import launch_run
from toolbench.lab.models import Trial
from toolbench.lab.worker.queue import queue_trials

pytestmark = pytest.mark.django_db

COLUMNS = [field.attname for field in Trial._meta.concrete_fields if field.attname not in ("id", "queued_at")]


def test_queued_trials_are_the_rows_that_django_would_have_written() -> None:
    run = launch_run(make_model(), scenarios=("happy_path", "chat_only"), trials=2)
    trials = list(run.trials.all())
    for trial in trials:
        trial.position += 100
    trials[0].outcome, trials[0].verdict, trials[0].final_text = "na", {"rule": 'it\'s "quoted"'}, b"\x00\xff"
    written = run.trials.filter(position__gte=100)
    queue_trials([])
    queue_trials(trials)
    ours = list(written.values(*COLUMNS))
    written.delete()
    for trial in trials:
        trial.pk = None
    Trial.objects.bulk_create(trials)
    assert ours == list(written.values(*COLUMNS))
