"""Worker sessions beside rows that cannot be read or computed: only the trials of those rows are affected."""

import pytest

from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from toolbench.evals.causes.table import read_taxonomy_version
from toolbench.lab.metrics.cells import mark_stale
from toolbench.lab.models import JobFailure, Model, Run
from toolbench.lab.worker import trial_job
from toolbench.providers.scripted_server import (
    ScriptedServer,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_session_finishes_beside_cell_out_of_range(scripted: ScriptedServer) -> None:
    broken_model, other_model = make_scripted_model(scripted), make_scripted_model(scripted, "innocent")
    broken_run, other_run = launch_run(broken_model, trials=2), launch_run(other_model, trials=2)
    run_worker_session(broken_model)
    broken_run.trials.update(input_tokens=2**63 - 1)
    Run.objects.filter(pk=broken_run.pk).update(state=Run.State.RUNNING)
    mark_stale(broken_run.cells.values_list("pk", flat=True))
    assert run_worker_session(other_model) == 2
    assert set(Run.objects.values_list("state", flat=True)) == {Run.State.FINISHED}
    assert (broken_run.cells.get().passed, broken_run.cells.get().compute_error) == (2, "bigint out of range")
    assert (other_run.cells.get().passed, other_run.cells.get().compute_error) == (2, "")
    assert not JobFailure.objects.exists()


def test_session_unreadable_configuration_ends_only_its_trials(scripted: ScriptedServer) -> None:
    broken_model, fine = make_scripted_model(scripted), Model(name="fine", canonical="fine")
    fine.provider_id = broken_model.provider_id
    fine.save()
    broken_run, good = launch_run(broken_model, trials=2), launch_run(fine, trials=2)
    broken_run.configs.update(layers=[["a layer without a patch"]])
    assert run_worker_session(broken_model) == 4
    assert set(broken_run.trials.values_list("outcome", "failure_class")) == {("infra", "our_error")}
    assert set(good.trials.values_list("outcome", flat=True)) == {"pass"}


def test_session_error_while_classifying_ends_as_internal_error(
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
    assert (trial.cause, trial.taxonomy) == ("our_error", read_taxonomy_version())
    assert (cell.requests, JobFailure.objects.get().job) == (3, "a trial")
