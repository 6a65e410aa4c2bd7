"""Rows that cannot be read or stored end their own trials, and no session."""

import pytest

from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from toolbench.lab.metrics.cells import mark_stale
from toolbench.lab.models import JobFailure, Model, Run
from toolbench.lab.worker import trial_job
from toolbench.providers.scripted_server import (
    ScriptedServer,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_poisoned_cell_lets_sessions_of_other_providers_finish(scripted: ScriptedServer) -> None:
    poisoned, innocent = make_scripted_model(scripted), make_scripted_model(scripted, "innocent")
    bad, other = launch_run(poisoned, trials=2), launch_run(innocent, trials=2)
    run_worker_session(poisoned)
    bad.trials.update(input_tokens=2**63 - 1)
    Run.objects.filter(pk=bad.pk).update(state=Run.State.RUNNING)
    mark_stale(bad.cells.values_list("pk", flat=True))
    assert run_worker_session(innocent) == 2
    assert set(Run.objects.values_list("state", flat=True)) == {Run.State.FINISHED}
    assert (bad.cells.get().passed, bad.cells.get().compute_error) == (2, "bigint out of range")
    assert (other.cells.get().passed, other.cells.get().compute_error) == (2, "")
    assert not JobFailure.objects.exists()


def test_configuration_that_cannot_be_read_ends_its_own_trials(scripted: ScriptedServer) -> None:
    broken, fine = make_scripted_model(scripted), Model(name="fine", canonical="fine")
    fine.provider_id = broken.provider_id
    fine.save()
    bad, good = launch_run(broken, trials=2), launch_run(fine, trials=2)
    bad.configs.update(layers=[["a layer without a patch"]])
    assert run_worker_session(broken) == 4
    assert set(bad.trials.values_list("outcome", "failure_class")) == {("infra", "our_error")}
    assert set(good.trials.values_list("outcome", flat=True)) == {"pass"}


def test_trial_whose_end_cannot_be_described_ends_as_internal_error(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("a cause")

    model = make_scripted_model(scripted)
    run = launch_run(model, trials=1)
    monkeypatch.setattr(trial_job, "build_cause_columns", broken)
    assert run_worker_session(model) == 1
    trial, cell = run.trials.get(), run.cells.get()
    assert (trial.state, trial.outcome, trial.failure_class) == ("done", "infra", "our_error")
    assert (cell.requests, JobFailure.objects.get().job) == (3, "a trial")
