"""Runs from before scenarios had versions replay and are judged as they were then.

The data are rows of two runs of simulated models, written at commit adb19c0: four personas × eight state scenarios ×
native and text JSON × two drawn trials, and two personas × the published wording. Worker names are omitted.
"""

from pathlib import Path

import pytest
from django.core.management import call_command

from tests.lab.scripted_runs import run_worker_session
from tests.lab.simulated_runs import get_simulated_model, run_to_end, serve_simulated_models
from toolbench.evals.judging import verdict
from toolbench.lab.models import Judgement, Run, Step, Trial
from toolbench.lab.replays.check import check_replay
from toolbench.lab.replays.rejudge import get_judging_state, list_run_trials, rejudge_trials
from toolbench.lab.replays.stored_trials import FIRST_JUDGING_VERSION, replay_trials
from toolbench.lab.runs.control import start_repeat

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE = Path(__file__).parent / "data" / "before_scenario_versions.json.xz"


@pytest.fixture
def old_runs(transactional_db: None) -> list[Run]:
    call_command("loaddata", str(BEFORE), verbosity=0)
    return list(Run.objects.order_by("pk"))


def test_replay_trials_of_old_runs_give_same_verdict_or_named_rule(old_runs: list[Run]) -> None:
    replayed = list(replay_trials(Trial.objects.order_by("pk").values_list("pk", flat=True)))

    assert len(replayed) == 144
    assert [item for item in replayed if item.is_not_replayable or item.unknown_from is not None] == []
    assert {item.version for item in replayed} == {1}
    changed = [item for item in replayed if _verdict(item.columns) != _verdict(vars(item.trial))]
    assert [item for item in changed if not _is_named(item.trial, item.columns)] == []


def test_check_replay_of_old_runs_holds_and_names_newer_rules(old_runs: list[Run]) -> None:
    for run in old_runs:
        check = check_replay(run.pk)
        assert check.holds, check.sentence
        assert all("→ empty_final, by version 2 of the rules." in line for line in check.by_newer_rules)


def test_rejudge_trials_of_old_runs_keeps_scenario_version(old_runs: list[Run]) -> None:
    for run in old_runs:
        stored = {trial.pk: trial for trial in run.trials.all()}
        done = rejudge_trials(list_run_trials(run.pk).values_list("pk", flat=True))

        assert (done.unknown, done.unversioned) == (0, 0), done.sentence
        assert done.judged + done.current == len(stored)
        for trial in run.trials.all():
            same = _verdict(vars(trial)) == _verdict(vars(stored[trial.pk]))
            assert same or _is_named(stored[trial.pk], vars(trial)), trial
        assert get_judging_state(run.pk).outdated == 0
    assert set(Judgement.objects.values_list("scenario_version", flat=True)) <= {1}


def test_session_finishes_run_queued_before_upgrade_with_version_1(old_runs: list[Run]) -> None:
    drawn = old_runs[0]
    queued = drawn.trials.filter(config__model_name="reliable-70", index=2)
    first = dict(queued.values_list("pk", "outcome"))
    Step.objects.filter(trial__in=queued).delete()
    queued.update(state=Trial.State.QUEUED, outcome="", verdict={}, execution=0, finished_at=None)
    Run.objects.filter(pk=drawn.pk).update(state=Run.State.RUNNING, finished_at=None)

    with serve_simulated_models():
        run_worker_session(get_simulated_model("reliable-70"))

    drawn.refresh_from_db()
    assert drawn.state == Run.State.FINISHED
    done = Trial.objects.filter(pk__in=first)
    assert dict(done.values_list("pk", "outcome")) == first
    for step in Step.objects.filter(trial__in=done, kind=Step.Kind.EXCHANGE, ordinal=0).select_related("body"):
        assert b"The whole exchange, message by message" in bytes(step.body.request)
    assert check_replay(drawn.pk).holds


def test_launch_uses_newest_version_of_its_instance_kind(db: None) -> None:
    with serve_simulated_models():
        for kind, version in (("parity", 1), ("drawn", 2)):
            run = run_to_end(
                get_simulated_model("perfect"), scenarios=("happy_path", "chat_only"), instance_kind=kind, trials=2
            )
            cells = dict(run.cells.values_list("scenario", "scenario_version"))
            assert cells == {"happy_path": version, "chat_only": 1}
            assert set(run.trials.values_list("outcome", "scenario_version")) == {("pass", version), ("pass", 1)}
            assert check_replay(run.pk).holds
            assert get_judging_state(run.pk).outdated == 0
    again = start_repeat(set_to_version_1(run).pk, owner=None)
    assert set(again.trials.filter(scenario="happy_path").values_list("scenario_version", flat=True)) == {1}


def set_to_version_1(run: Run) -> Run:
    """Change the run as if it had been launched with version 1, and return it."""
    run.cells.filter(scenario="happy_path").update(scenario_version=1)
    run.trials.filter(scenario="happy_path").update(scenario_version=1)
    return run


def _verdict(columns: object) -> tuple[object, ...]:
    assert isinstance(columns, dict)
    return tuple(columns[name] for name in ("outcome", "task_pass", "parity_pass", "failure_class", "category"))


def _is_named(trial: Trial, after: object) -> bool:
    """Return whether a newer judging version names the rule that changed the verdict."""
    assert isinstance(after, dict)
    newer_versions = range(FIRST_JUDGING_VERSION + 1, verdict.VERSION + 1)
    classes = frozenset[str]().union(
        *(verdict.NEW_CLASSES_BY_VERSION.get(version, frozenset()) for version in newer_versions)
    )
    return trial.failure_class != after["failure_class"] and after["failure_class"] in classes
