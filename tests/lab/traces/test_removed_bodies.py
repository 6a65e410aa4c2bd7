"""A real run whose bodies were removed: pages, exports, commands and verdicts."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from toolbench.lab.models import Cell, Run, Step, Trial
from toolbench.lab.operations.body_removal import remove_due_bodies
from toolbench.lab.operations.retention_policy import Kind, RetentionPolicy
from toolbench.lab.replays.reclassify import reclassify
from toolbench.lab.replays.rejudge import get_judging_state, rejudge_trials
from toolbench.lab.replays.stored_trials import replay_trials
from toolbench.lab.traces.removed_bodies import explain_removed_bodies
from toolbench.providers.scripted_server import ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(scripted: ScriptedServer) -> Run:
    """Return a run with one passed and one failed trial, whose bodies were removed."""
    model = make_scripted_model(scripted)
    run = launch_run(model, scenarios=("happy_path", "happy_path_parallel"), trials=1)
    run_worker_session(model)
    Trial.objects.update(finished_at="2026-01-01T00:00:00Z")
    assert remove_due_bodies(RetentionPolicy({Kind.PASSED: 1, Kind.FAILED: 1})).removed == 2
    return Run.objects.get(pk=run.pk)


def list_columns() -> list[Any]:
    return list(Trial.objects.order_by("pk").values())


def test_rejudge_and_reclassify_without_bodies_change_nothing(run: Run) -> None:
    before, cells = list_columns(), list(Cell.objects.order_by("pk").values())
    ids = [trial["id"] for trial in before]
    result = rejudge_trials(ids)
    assert result.without_bodies == 2
    assert "2 cannot be judged: their bodies were removed" in result.sentence
    assert reclassify(run_id=run.pk, again=True) == (0, 0)
    assert list_columns() == before
    assert list(Cell.objects.order_by("pk").values()) == cells
    state = get_judging_state(run.pk)
    assert (state.outdated, state.without_bodies) == (0, 2)


def test_replay_trials_without_bodies_gives_reason(run: Run) -> None:
    for replayed in replay_trials(Trial.objects.values_list("pk", flat=True)):
        assert replayed.is_not_replayable
        assert replayed.reason == explain_removed_bodies(replayed.trial)


def test_pages_and_exports_of_trial_without_bodies_answer_200(run: Run, owner_client: Client) -> None:
    trial = Trial.objects.filter(outcome="fail")[0]
    steps = Step.objects.filter(trial=trial)
    addresses = [f"/trials/{trial.pk}/?view={view}" for view in ("", "conversation", "differences")]
    addresses += [f"/trials/{trial.pk}/?step={step.ordinal}.{part}" for step in steps for part in ("request", "calls")]
    addresses += [f"/steps/{step.pk}/{side}/" for step in steps for side in ("request", "response", "curl")]
    addresses += [f"/runs/{run.pk}/{file}" for file in ("", "report.zip", "bundle.zip", "report.html", "trials.csv")]
    addresses += [f"/runs/{run.pk}/inspect.zip", f"/runs/{run.pk}/otlp.jsonl", f"/trials/{trial.pk}/otlp.jsonl"]
    addresses += ["/trials/?search=happy", f"/what-if/?trial={trial.pk}", f"/what-if/?run={run.pk}", "/failures/"]
    addresses += [f"/api/v1/trials/{trial.pk}", f"/cases/new/?trial={trial.pk}", f"/compare/?a_run={run.pk}"]
    answers = {address: owner_client.get(address, follow=True) for address in addresses}
    for answer in answers.values():
        b"".join(answer) if answer.streaming else answer.content
    assert {address: answer.status_code for address, answer in answers.items() if answer.status_code != 200} == {}


def test_bundle_of_run_without_bodies_keeps_the_removal_rule(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "run.zip"
    call_command("bundle", run.pk, out=path)
    call_command("import_bundle", path)
    imported = Trial.objects.filter(run__imported=True)
    assert imported.count() == 2
    assert all(trial.bodies_rule for trial in imported)
