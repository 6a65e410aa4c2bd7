"""Confirmation of a decision on new trials."""

from dataclasses import replace

import pytest
from django.db.models import F
from django.test import Client

from tests.factories import make_model, make_provider, make_trial
from tests.page_html import read_html
from toolbench.evals.decisions.assessments import DecisionRule, MeasuredConfig
from toolbench.evals.decisions.requirements import assess_config
from toolbench.evals.statistics.intervals import ScenarioSample
from toolbench.evals.statistics.pooling import pool_samples
from toolbench.lab.metrics.cells import recompute_immediately
from toolbench.lab.models import DecisionRecord, Provider, Run, SamplingProfile
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.results.decide.candidates import get_candidate_pool
from toolbench.lab.results.decide.confirmation_run import (
    count_trials_needed,
    get_confirmation,
    launch_confirmation,
    save_confirmation,
)
from toolbench.lab.results.decide.new_trials import NewTrialsError
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.decide.records import assessment_to_json, save_record
from toolbench.lab.runs.launch import launch

pytestmark = pytest.mark.django_db
DEMO = DecideQuery(scope="demo", want="fastest")


def finish_run(run: Run, *, outcome: str = "pass") -> None:
    passed = outcome == "pass"
    fields = {"state": "done", "outcome": outcome, "task_pass": passed, "duration_ms": F("position") + 100.0}
    run.trials.update(**fields)
    Run.objects.filter(pk=run.pk).update(state=Run.State.FINISHED)


@pytest.fixture
def record() -> DecisionRecord:
    """Save the decision on a simulated model that passed all of 76 trials."""
    model = make_model("perfect", provider=make_provider("Simulated", kind=Provider.Kind.SIMULATED))
    SamplingProfile.objects.create(name="default")
    run = launch(RunRequest(models=(model.pk,), scenarios=("happy_path",), trials=76, instance_kind="drawn"))
    finish_run(run)
    recompute_immediately(run.cells.values_list("pk", flat=True))
    return save_record(DEMO, owner=None)


def test_launch_confirmation_keeps_settings_and_draws_a_new_seed(record: DecisionRecord) -> None:
    run = launch_confirmation(record, owner=None, trials=count_trials_needed(record))
    config, chosen = run.configs.get(), record.evidence[0]
    assert run.purpose == "confirm"
    assert config.policy_hash == chosen["settings"]
    assert run.seed != Run.objects.get(pk=chosen["run_ids"][0]).seed
    assert (run.instance_kind, run.trials.count()) == ("drawn", 72)


def test_save_confirmation_needs_a_finished_run_and_keeps_first_result(record: DecisionRecord) -> None:
    run = launch_confirmation(record, owner=None, trials=72)
    record.refresh_from_db()
    with pytest.raises(NewTrialsError, match="has not finished"):
        save_confirmation(record)
    finish_run(run)
    record.refresh_from_db()
    save_confirmation(record)
    record.refresh_from_db()
    assert record.confirmed
    assert (record.confirmed["state"], record.confirmed["tried"]) == ("qualified", 72)
    run.trials.update(outcome="fail")
    save_confirmation(record)
    record.refresh_from_db()
    assert record.confirmed
    assert record.confirmed["passed"] == 72


@pytest.mark.parametrize("state", Run.ENDED)
def test_save_confirmation_with_cancelled_trials_saves_nothing(state: str, record: DecisionRecord) -> None:
    run = launch_confirmation(record, owner=None, trials=80)
    finish_run(run)
    run.trials.filter(index__gt=76).update(outcome="cancelled")
    Run.objects.filter(pk=run.pk).update(state=state)
    record.refresh_from_db()
    with pytest.raises(NewTrialsError, match="Resume its run"):
        save_confirmation(record)
    record.refresh_from_db()
    assert record.confirmed is None


def test_confirmation_with_cancelled_trials_names_deleted_provider(
    record: DecisionRecord, owner_client: Client
) -> None:
    run = launch_confirmation(record, owner=None, trials=80)
    finish_run(run)
    run.trials.filter(index__gt=76).update(outcome="cancelled")
    Run.objects.filter(pk=run.pk).update(state=Run.State.CANCELLED)
    record.refresh_from_db()
    found = get_confirmation(record)
    assert found
    assert not found.obstacle
    run.trials.update(provider=None)
    found = get_confirmation(record)
    assert found
    assert found.obstacle.startswith("The provider Simulated was deleted, so the cancelled trials cannot be resumed")
    with pytest.raises(NewTrialsError, match=r"Nothing was saved\. The provider Simulated was deleted"):
        save_confirmation(record)
    page = read_html(owner_client.get(f"/decide/records/{record.pk}/"))
    assert found.obstacle in page
    assert "resume them on the page of the run" not in page


def test_save_confirmation_of_cancelled_run_saves_if_all_trials_ended(record: DecisionRecord) -> None:
    run = launch_confirmation(record, owner=None, trials=72)
    finish_run(run)
    make_trial(run.cells.get(), "cancelled", added_by_hand=True, index=73)
    Run.objects.filter(pk=run.pk).update(state=Run.State.CANCELLED)
    record.refresh_from_db()
    save_confirmation(record)
    record.refresh_from_db()
    assert record.confirmed
    assert record.confirmed["tried"] == 72


def test_get_confirmation_names_scenarios_without_a_tried_trial(record: DecisionRecord) -> None:
    finish_run(launch_confirmation(record, owner=None, trials=72))
    record.refresh_from_db()
    record.evidence[0]["scenarios"] = ["happy_path", "long_arguments_guard"]
    found = get_confirmation(record)
    assert found
    assert found.assessment
    assert found.assessment.state == "refused"
    assert found.assessment.reasons[0].sentence.startswith("It was not tried on long_arguments_guard")


def test_save_confirmation_of_failed_run_is_refused(record: DecisionRecord) -> None:
    run = launch_confirmation(record, owner=None, trials=72)
    finish_run(run, outcome="fail")
    record.refresh_from_db()
    save_confirmation(record)
    record.refresh_from_db()
    assert record.confirmed
    assert record.confirmed["state"] == "refused"
    assert "success" in [reason["name"] for reason in record.confirmed["reasons"]]


def test_get_confirmation_of_repeated_answers_names_repeats(record: DecisionRecord) -> None:
    run = launch_confirmation(record, owner=None, trials=72)
    finish_run(run)
    run.cells.update(deterministic=True, distinct=1, repeated_answers=71)
    record.refresh_from_db()
    found = get_confirmation(record)
    assert found
    assert found.assessment
    assert "repeats" in [reason.name for reason in found.assessment.reasons]


def test_get_confirmation_excludes_manually_added_trials(record: DecisionRecord) -> None:
    run = launch_confirmation(record, owner=None, trials=72)
    finish_run(run)
    run.trials.filter(index__gt=60).update(added_by_hand=True)
    record.refresh_from_db()
    found = get_confirmation(record)
    assert found
    assert found.assessment
    assert found.assessment.measured.tried == 60


def test_launch_confirmation_sends_at_most_confirmed_paid_requests(
    record: DecisionRecord,
) -> None:
    Provider.objects.update(kind=Provider.Kind.OPENAI)
    with pytest.raises(PaidRequestsUnconfirmedError) as raised:
        launch_confirmation(record, owner=None, trials=72)
    confirmed = raised.value.max_paid_requests
    with pytest.raises(PaidRequestsUnconfirmedError):
        launch_confirmation(record, owner=None, trials=73, confirmed_requests=confirmed)
    assert launch_confirmation(record, owner=None, trials=72, confirmed_requests=confirmed).trials.count() == 72


def test_launch_confirmation_refuses_a_second_run(record: DecisionRecord) -> None:
    launch_confirmation(record, owner=None, trials=5)
    with pytest.raises(NewTrialsError, match="already"):
        launch_confirmation(record, owner=None, trials=5)


def test_launch_confirmation_refuses_other_settings(record: DecisionRecord) -> None:
    record.evidence[0]["settings"] = "another"
    with pytest.raises(NewTrialsError, match="other settings would be tried"):
        launch_confirmation(record, owner=None, trials=5)


def test_candidate_pool_excludes_confirmation_trials(record: DecisionRecord) -> None:
    finish_run(launch_confirmation(record, owner=None, trials=5))
    assert [candidate.measured.tried for candidate in get_candidate_pool(replace(DEMO)).candidates] == [76]


@pytest.mark.parametrize(
    "parts",
    [
        (ScenarioSample(72, 72),),
        (ScenarioSample(10, 10),) * 4,
        (ScenarioSample(90, 90), ScenarioSample(9, 10)),
        (ScenarioSample(300, 300), ScenarioSample(37, 40), ScenarioSample(39, 40)),
        (ScenarioSample(195, 200), ScenarioSample(50, 50)),
        (ScenarioSample(55, 55), ScenarioSample(5, 5)),
    ],
)
def test_count_trials_needed_lifts_bound_at_the_observed_share(parts: tuple[ScenarioSample, ...]) -> None:
    passed, tried = (sum(int(count) for count in counts) for counts in zip(*((p.k, p.n) for p in parts), strict=True))
    rule = {"want": "reliable", "success": 90.0, "within_ms": None}
    row = assessment_to_json(
        assess_config(
            MeasuredConfig("a", "a", passed, tried, tried, end_to_end_by_scenario=parts),
            DecisionRule("reliable", 90.0, None),
        )
    )
    row |= {"scenarios": [f"scenario_{place}" for place in range(len(parts))]}
    trial_count = count_trials_needed(DecisionRecord(rule=rule, leader="a", evidence=[row]))
    assert pool_samples([ScenarioSample(trial_count * part.k / part.n, trial_count) for part in parts]).low >= 0.9


def test_count_trials_needed_bounds_p95_if_time_counts() -> None:
    row = assessment_to_json(assess_config(MeasuredConfig("a", "a", 80, 80, 80), DecisionRule("reliable", 90.0, None)))
    record = DecisionRecord(leader="a", evidence=[row | {"scenarios": ["one", "two"]}])
    record.rule = {"want": "fastest", "success": 90.0, "within_ms": None}
    assert 2 * count_trials_needed(record) == 72
