from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from tests.lab.conftest import RunInThread
from tests.lab.query_plans import count_most_rows
from tests.lab.schedules.scheduled import add_run, make_rule, make_schedule
from toolbench.lab.metrics.cells import mark_stale
from toolbench.lab.models import Alert, AlertDelivery, AlertRule, JobFailure, Run, Schedule
from toolbench.lab.models.runs import ALERTS_UNCHECKED
from toolbench.lab.runs import control
from toolbench.lab.runs.action_checks import reopen_run
from toolbench.lab.schedules.alerting import check_ended_runs
from toolbench.lab.schedules.conditions import ConditionFinding, EndedRun

pytestmark = pytest.mark.django_db
Kind = AlertRule.Kind


def end_run(schedule: Schedule | None, *counts: tuple[int, int], **fields: Any) -> Run:
    run = add_run(schedule, *counts, finished_at=timezone.now(), **fields)
    check_ended_runs()
    return run


@pytest.fixture
def schedule() -> Schedule:
    """Make a schedule with a baseline of three runs without a failure."""
    schedule = make_schedule()
    schedule.baseline_runs.set([end_run(schedule, (20, 0), (20, 0)) for _ in range(3)])
    return schedule


def test_check_ended_runs_opens_one_alert_while_a_drop_lasts(schedule: Schedule) -> None:
    make_rule(Kind.DRIFT, schedule, email="a@example.test")
    end_run(schedule, (20, 0), (20, 0))
    assert not Alert.objects.exists()
    failed_run = end_run(schedule, (0, 20), (20, 0))
    for _ in range(3):
        end_run(schedule, (0, 20), (20, 0))
    alert = Alert.objects.get()
    assert alert.run == failed_run
    assert "success dropped by 100 points, since run" in alert.sentence
    assert "vendor/model-0" in alert.sentence
    assert alert.deliveries.get().channel == "email"


def test_check_ended_runs_continues_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    broken, intact = (add_run(None, (1, 1), finished_at=timezone.now()) for _ in range(2))

    def find_conditions(rule: AlertRule, ended: EndedRun) -> list[ConditionFinding]:
        if ended.run == broken:
            raise RuntimeError("a defect")
        return [ConditionFinding("", "It has ended.")]

    AlertRule.objects.create(kind=Kind.INFRASTRUCTURE, threshold=5)
    AlertRule.objects.update(created_at=timezone.now() - timedelta(days=1))
    monkeypatch.setattr("toolbench.lab.schedules.alerting.find_conditions", find_conditions)
    assert check_ended_runs() == 1
    assert Alert.objects.get().run == intact
    assert JobFailure.objects.get().job == "checking alert rules"


def test_check_ended_runs_resolves_the_alert_after_a_new_baseline(schedule: Schedule) -> None:
    make_rule(Kind.DRIFT, schedule)
    failed_run = end_run(schedule, (0, 20), (20, 0))
    schedule.baseline_runs.set([failed_run])
    end_run(schedule, (0, 20), (20, 0))
    assert Alert.objects.get().resolved_at is not None


def test_check_ended_runs_opens_a_second_alert_if_a_condition_returns(schedule: Schedule) -> None:
    make_rule(Kind.BELOW_TARGET, schedule, 90)
    for passed in (0, 0, 20, 0):
        end_run(schedule, (passed, 20 - passed), (20, 0))
    first, second = Alert.objects.order_by("pk")
    assert first.resolved_at is not None
    assert second.resolved_at is None
    assert "success is below 90 %: 0/20" in second.sentence


@pytest.mark.parametrize(
    ("kind", "threshold", "words"),
    [
        (Kind.SLOW, 0.5, "p95 is above 0.5 s"),
        (Kind.INFRASTRUCTURE, 5, "4 of 24 trials ended with an infrastructure error"),
        (Kind.SPEND, 2, "The run cost $3.00, more than $2.00"),
        (Kind.RUN_ENDED, None, "The run is finished: 20 of 24 trials passed, 4 infrastructure errors."),
    ],
)
def test_check_ended_runs_alert_of_each_kind_names_its_figures(
    kind: Kind, threshold: float | None, words: str, schedule: Schedule
) -> None:
    make_rule(kind, schedule, threshold)
    run = make_run(schedule=schedule, finished_at=timezone.now())
    cell = make_cell(make_config(run, make_model("vendor/model-0")))
    make_trials(cell, **{"pass": 20, "infra": 4})
    run.cells.update(cost=3.0)
    check_ended_runs()
    assert words in Alert.objects.get().sentence


def test_check_ended_runs_opens_no_alert_below_the_thresholds(schedule: Schedule) -> None:
    for kind, threshold in ((Kind.SLOW, 60), (Kind.INFRASTRUCTURE, 5), (Kind.SPEND, 5), (Kind.BELOW_TARGET, 90)):
        make_rule(kind, schedule, threshold)
    end_run(schedule, (19, 1), (20, 0))
    assert not Alert.objects.exists()


def test_check_ended_runs_alerts_on_answers_unknown_to_the_baseline() -> None:
    schedule = make_schedule()
    baseline_runs = [add_run(schedule, (10, 0), finished_at=timezone.now()) for _ in range(2)]
    for run in baseline_runs:
        run.trials.update(answer_hash="same")
    schedule.baseline_runs.set(baseline_runs)
    make_rule(Kind.ANSWERS_CHANGED, schedule, 50)
    same_run = add_run(schedule, (10, 0), finished_at=timezone.now())
    same_run.trials.update(answer_hash="same")
    check_ended_runs()
    assert not Alert.objects.exists()
    end_run(schedule, (10, 0))  # every answer differs
    assert "0 % of the answers also occur in the baseline" in Alert.objects.get().sentence


def test_changed_answers_are_compared_by_share_in_one_row() -> None:
    """Half of the answers of the run occur in the baseline, of whose answers two thirds occur more than once."""
    schedule = make_schedule()
    schedule.baseline_runs.set([add_run(schedule, (6, 0), (6, 0), finished_at=timezone.now()) for _ in range(2)])
    for run in schedule.baseline_runs.all():
        run.trials.filter(index__lte=4).update(answer_hash="same")
    make_rule(Kind.ANSWERS_CHANGED, schedule, 80)
    changed_run = add_run(schedule, (6, 0), finished_at=timezone.now())
    changed_run.trials.filter(index__lte=3).update(answer_hash="same")
    row_counts: list[int] = []

    def count_rows(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        result = execute(sql, parameters, many, context)
        if "answer_hash" in sql and sql.startswith("SELECT"):
            row_counts.append(context["cursor"].rowcount)
        return result

    with connection.execute_wrapper(count_rows):
        check_ended_runs()
    expected = "50 % of the answers also occur in the baseline, where 67 % occur more than once"
    assert expected in Alert.objects.get().sentence
    assert row_counts == [1]


def test_check_ended_runs_notifies_once_for_each_ended_run() -> None:
    make_rule(Kind.RUN_ENDED, None)
    for state in ("finished", "cancelled"):
        end_run(None, (1, 0), state=state)
    check_ended_runs()
    assert [alert.sentence.partition(":")[0] for alert in Alert.objects.order_by("pk")] == [
        "The run is finished",
        "The run is cancelled",
    ]
    assert not Alert.objects.filter(resolved_at=None).exists()


@pytest.mark.parametrize(
    "fields",
    [{"imported": True}, {"deleted_at": timezone.now()}, {"purpose": "first_page"}, {"purpose": Run.PLAYGROUND}],
    ids=["imported", "deleted", "demo", "playground"],
)
def test_check_ended_runs_ignores_runs_under_no_rule(fields: dict[str, Any]) -> None:
    make_rule(Kind.RUN_ENDED, None)
    run = end_run(None, (1, 0), **fields)
    run.refresh_from_db()
    assert run.alerts_checked_at is not None
    assert not Alert.objects.exists()


def test_check_ended_runs_ignores_runs_that_ended_before_the_rule() -> None:
    rule = make_rule(Kind.RUN_ENDED, None)
    AlertRule.objects.filter(pk=rule.pk).update(created_at=timezone.now() + timedelta(minutes=1))
    end_run(None, (1, 0))
    assert not Alert.objects.exists()


def test_check_ended_runs_ignores_an_inactive_rule() -> None:
    make_rule(Kind.RUN_ENDED, None, active=False)
    end_run(None, (1, 0))
    assert not Alert.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_check_ended_runs_by_several_schedulers_opens_each_alert_once(elsewhere: RunInThread) -> None:
    make_rule(Kind.RUN_ENDED, None, email="a@example.test")
    for _ in range(3):
        add_run(None, (1, 0), finished_at=timezone.now())
    results = [elsewhere(check_ended_runs) for _ in range(4)]
    assert sum(result.result() for result in results) == 3
    assert (Alert.objects.count(), AlertDelivery.objects.count()) == (3, 3)


@pytest.mark.django_db(transaction=True)
def test_check_ended_runs_at_once_opens_one_alert_for_a_condition(elsewhere: RunInThread) -> None:
    make_rule(Kind.INFRASTRUCTURE, None, 5)
    for _ in range(6):
        run = make_run(finished_at=timezone.now())
        make_trials(make_cell(make_config(run)), infra=4)
    results = [elsewhere(check_ended_runs) for _ in range(4)]
    assert sum(result.result() for result in results) == 1
    assert Alert.objects.get().sentence == "4 of 4 trials ended with an infrastructure error."
    assert not Run.objects.filter(alerts_checked_at=None).exists()


def test_check_ended_runs_alerts_again_after_the_first_run_was_deleted(schedule: Schedule) -> None:
    make_rule(Kind.BELOW_TARGET, schedule, 90)
    deleted_run = end_run(schedule, (0, 20), (20, 0))
    control.delete_run(deleted_run.pk)
    next_run = end_run(schedule, (0, 20), (20, 0))
    assert Alert.objects.get(resolved_at=None).run == next_run


def end_again(run: Run) -> None:
    reopen_run(run.pk)
    Run.objects.filter(pk=run.pk).update(state=Run.State.FINISHED, finished_at=timezone.now())
    check_ended_runs()


def test_check_ended_runs_checks_a_reopened_run_and_reports_it_once(schedule: Schedule) -> None:
    make_rule(Kind.BELOW_TARGET, schedule, 90)
    make_rule(Kind.RUN_ENDED, schedule)
    run = end_run(schedule, (20, 0), (20, 0))
    assert Alert.objects.count() == 1
    cell = run.cells.all()[0]
    for outcomes in ({"fail": 30}, {"fail": 1}):
        mark_stale([cell.pk])
        make_trials(cell, **outcomes)
        end_again(run)
    assert Alert.objects.filter(rule__kind=Kind.BELOW_TARGET).count() == 1
    assert Alert.objects.count() == 2


def test_check_ended_runs_leaves_alerts_of_later_runs_when_one_is_reopened(schedule: Schedule) -> None:
    make_rule(Kind.BELOW_TARGET, schedule, 90)
    good_run = end_run(schedule, (20, 0), (20, 0))
    end_run(schedule, (0, 20), (20, 0))
    alert = Alert.objects.get()
    end_again(good_run)
    alert.refresh_from_db()
    assert (alert.resolved_at, Alert.objects.count()) == (None, 1)
    assert check_ended_runs() == 0


def test_check_ended_runs_checks_spending_of_a_run_reopened_after_a_later() -> None:
    make_rule(Kind.SPEND, None, 5)
    run = end_run(None, (1, 0))
    end_run(None, (1, 0))
    run.cells.update(cost=60.0)
    end_again(run)
    assert Alert.objects.get(resolved_at=None).run == run


def test_check_ended_runs_reopened_run_leaves_the_alert_of_a_later_run() -> None:
    make_rule(Kind.INFRASTRUCTURE, None, 5)
    run = end_run(None, (1, 0))
    later_run = make_run(state="cancelled", finished_at=timezone.now())
    make_trials(make_cell(make_config(later_run)), infra=4)
    check_ended_runs()
    end_again(run)
    assert Alert.objects.get(resolved_at=None).run == later_run


@pytest.mark.parametrize("fields", [{"state": "cancelled"}, {"purpose": "first_page"}])
def test_check_ended_runs_later_run_without_series_prevents_no_check(
    fields: dict[str, Any], schedule: Schedule
) -> None:
    make_rule(Kind.BELOW_TARGET, schedule, 90)
    run = end_run(schedule, (20, 0), (20, 0))
    end_run(schedule, (20, 0), (20, 0), **fields)
    mark_stale([run.cells.all()[0].pk])
    make_trials(run.cells.all()[0], fail=30)
    end_again(run)
    assert Alert.objects.get().run == run


def test_check_ended_runs_replaces_the_notice_if_the_state_has_changed() -> None:
    make_rule(Kind.RUN_ENDED, None, email="a@example.test")
    run = end_run(None, (1, 0), state="cancelled")
    AlertDelivery.objects.update(state="sent")
    for _ in range(2):
        end_again(run)
    alert = Alert.objects.get()
    assert alert.sentence.startswith("The run is finished: 1 of 1 trials passed")
    assert alert.deliveries.get().state == "pending"


def test_alerts_unchecked_run_is_found_by_index() -> None:
    now = timezone.now()
    for _ in range(20):
        make_run(finished_at=now, alerts_checked_at=now)
    make_run(finished_at=now, alerts_checked_at=now - timedelta(minutes=1))
    statement = Run.objects.filter(ALERTS_UNCHECKED).order_by("pk").values("pk").query.sql_with_params()
    assert count_most_rows(*statement) == 1
