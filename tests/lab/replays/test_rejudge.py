import io
import json
from datetime import timedelta
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_run
from tests.lab.scripted_runs import answer_correctly, launch_run, make_scripted_model, run_worker_session
from tests.page_html import read_html
from toolbench.evals import scenarios
from toolbench.evals.judging import verdict
from toolbench.evals.scenarios import registry
from toolbench.evals.scenarios.state import StateScenario
from toolbench.lab.cases.drafts import CaseDraft, parse_draft
from toolbench.lab.cases.edit import add_case, build_run_request, edit_case
from toolbench.lab.models import Cell, Judgement, Replay, Run, Trial
from toolbench.lab.replays import queue, rejudge
from toolbench.lab.replays.check import check_replay
from toolbench.lab.replays.queue import find_rejudging, list_waiting_replays, request_rejudging, run_replay
from toolbench.lab.replays.rejudge import (
    get_changes,
    get_judgements,
    get_judging_state,
    list_run_trials,
    list_scenario_trials,
    rejudge_trials,
)
from toolbench.lab.replays.stored_trials import replay_trials
from toolbench.lab.runs.control import retry_errored_trials
from toolbench.lab.runs.launch import launch
from toolbench.providers.scripted_server import (
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    text_reply,
    tool_call_reply,
)

pytestmark = pytest.mark.django_db(transaction=True)
CANCEL = """[{"type": "function", "function": {"name": "cancel_order", "description": "", "parameters":
{"type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"]}}}]"""
STRICT = "happy_path_parallel"  # requires two calls in one turn; the scripted provider makes them in two turns


@pytest.fixture
def run(scripted: ScriptedServer) -> Run:
    model = make_scripted_model(scripted)
    run = launch_run(model, scenarios=("happy_path", STRICT), trials=2)
    run_worker_session(model)
    run.refresh_from_db()
    return run


@pytest.fixture
def corrected(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return the run with only version 2 of the scenario, which no longer requires two calls in one turn."""
    newest = scenarios.lookup_scenario(STRICT)
    known = {scenario.slug: scenarios.list_versions(scenario.slug) for scenario in scenarios.list_scenarios()}
    monkeypatch.setattr(newest, "behaviour", "")
    monkeypatch.setattr(registry, "_index_versions", lambda: {**known, STRICT: (newest,)})
    return run


def test_rejudge_trials_of_corrected_scenario_keeps_both_verdicts(corrected: Run, scripted: ScriptedServer) -> None:
    request_count = len(scripted.seen)

    done = rejudge_trials(list_run_trials(corrected.pk).values_list("pk", flat=True))

    assert done.sentence.startswith(
        "2 trials re-judged, 2 fail → pass, 2 already judged by the current or newer versions"
    )
    trial = Trial.objects.filter(scenario=STRICT)[0]
    assert (trial.outcome, trial.task_pass, trial.failure_class) == ("pass", True, "")
    first, now = get_judgements(trial)
    assert (first.outcome, first.scenario_version, first.current) == ("fail", 1, False)
    assert (now.outcome, now.scenario_version, now.current) == ("pass", 2, True)
    assert first.columns["sentence"]
    assert (len(scripted.seen), corrected.requests_reserved) == (request_count, Run.objects.get().requests_reserved)


def test_rejudge_trials_recomputes_cells_of_their_runs_only(corrected: Run) -> None:
    other_cell = make_cell(make_config(make_run()), stale=True)
    rejudge_trials(list_run_trials(corrected.pk).values_list("pk", flat=True))
    assert list(Cell.objects.filter(stale=True)) == [other_cell]
    assert Cell.objects.get(run=corrected, scenario=STRICT).passed == 2


def test_rejudge_trials_updates_causes(corrected: Run) -> None:
    trials = Trial.objects.filter(scenario=STRICT)
    assert set(trials.values_list("cause", flat=True)) == {"calls_apart"}

    rejudge_trials(list_run_trials(corrected.pk).values_list("pk", flat=True))

    assert set(trials.values_list("cause", "cause_signature")) == {("", "")}


def test_rejudge_trial_with_bodies_removed_meanwhile_keeps_verdict(corrected: Run) -> None:
    trials = Trial.objects.filter(run=corrected, scenario=STRICT)
    replayed = list(replay_trials(trials.values_list("pk", flat=True), use_current_scenarios=True))
    trials.update(bodies_removed_at=timezone.now(), bodies_rule="Failed trials after 1 day")
    result = rejudge.RejudgeResult()
    with transaction.atomic():
        assert rejudge._store_verdicts(replayed, result) == []
    assert (result.judged, result.without_bodies) == (0, 2)
    assert set(trials.values_list("outcome", flat=True)) == {"fail"}


def test_request_rejudging_after_internal_error_queues_again(
    corrected: Run, monkeypatch: pytest.MonkeyPatch, admin_client: Client
) -> None:
    monkeypatch.setattr(queue, "MAX_REJUDGED_AT_ONCE", 1)
    corrected.trials.update(verdict={"judging": "no number"})
    assert request_rejudging(corrected) is None
    for row in list_waiting_replays():
        run_replay(row)
    failed = find_rejudging(corrected)
    assert failed is not None
    assert (failed.state, list_waiting_replays()) == ("done", ())
    assert "Toolbench itself failed (ValueError)" in read_html(admin_client.get(f"/runs/{corrected.pk}/judgements/"))
    request_rejudging(corrected)
    assert len(list_waiting_replays()) == 1


def test_request_rejudging_of_many_trials_is_queued_and_resumed(
    corrected: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "MAX_REJUDGED_AT_ONCE", 1)
    assert request_rejudging(corrected) is None
    row = find_rejudging(corrected)
    assert row is not None
    assert (row.done, row.total) == (0, 4)
    Replay.objects.update(state="running", lease=uuid4(), lease_until=timezone.now() + timedelta(seconds=60))
    run_replay(row.pk)
    assert list_waiting_replays() == ()
    assert not Judgement.objects.exists()

    Replay.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    for lost in list_waiting_replays():
        run_replay(lost)

    assert find_rejudging(corrected) is None
    assert Judgement.objects.filter(current=True).count() == 2
    assert request_rejudging(corrected) is None
    assert Replay.objects.count() == 1


def test_rejudging_that_stopped_four_workers_ends_with_sentence(
    corrected: Run, monkeypatch: pytest.MonkeyPatch, admin_client: Client
) -> None:
    monkeypatch.setattr(queue, "MAX_REJUDGED_AT_ONCE", 1)
    request_rejudging(corrected)
    Replay.objects.update(state="running", attempts=4, lease_until=timezone.now() - timedelta(seconds=1))
    for row in list_waiting_replays():
        run_replay(row)
    assert list_waiting_replays() == ()
    html = read_html(admin_client.get(f"/runs/{corrected.pk}/judgements/"))
    assert "The worker stopped four times while it re-judged this run." in html
    request_rejudging(corrected)
    assert Replay.objects.get().attempts == 0


def test_rejudge_trials_updates_counts_of_cells(corrected: Run) -> None:
    rejudge_trials(list_run_trials(corrected.pk).values_list("pk", flat=True))

    cell = corrected.cells.get(scenario=STRICT)
    assert (cell.passed, cell.failed, cell.stale) == (2, 0, False)


def test_rejudge_trials_repeated_changes_nothing(corrected: Run) -> None:
    ids = list(list_run_trials(corrected.pk).values_list("pk", flat=True))
    rejudge_trials(ids)

    again = rejudge_trials(ids)

    assert (again.judged, again.current) == (0, 4)
    assert Judgement.objects.count() == 4


@pytest.mark.parametrize("ended_in", [None, timedelta(days=2)])
def test_rejudge_trials_with_implausible_end_keeps_first_verdict(corrected: Run, ended_in: timedelta | None) -> None:
    corrected.trials.update(finished_at=ended_in and timezone.now() + ended_in)
    ids = list(list_run_trials(corrected.pk).values_list("pk", flat=True))

    assert rejudge_trials(ids).judged == 2
    again = rejudge_trials(ids)

    assert (again.judged, again.current) == (0, 4)
    assert [(first.outcome, now.outcome) for first, now in get_changes(corrected)] == [("fail", "pass")] * 2
    assert (get_judging_state(corrected.pk).outdated, get_judging_state(corrected.pk).rejudged) == (0, 2)


def test_get_judging_state_counts_outdated_and_rejudged_trials(corrected: Run) -> None:
    before = get_judging_state(corrected.pk)
    rejudge_trials(list_scenario_trials(STRICT).values_list("pk", flat=True))
    after = get_judging_state(corrected.pk)

    assert (before.outdated, before.rejudged) == (2, 0)
    assert (after.outdated, after.rejudged) == (0, 2)
    assert [(first.outcome, now.outcome) for first, now in get_changes(corrected)] == [("fail", "pass")] * 2


def test_rejudge_trials_of_new_rule_version_judges_every_trial(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "VERSION", verdict.VERSION + 1)

    assert get_judging_state(run.pk).outdated == 4
    done = rejudge_trials(list_run_trials(run.pk).values_list("pk", flat=True))

    assert (done.judged, done.unchanged) == (4, 4)
    assert get_judging_state(run.pk).outdated == 0


def test_rejudge_trials_updates_counts_of_trials(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = list(run.trials.order_by("pk").values_list("structured_answers", "calls"))
    run.trials.update(structured_answers=90, calls=91)
    monkeypatch.setattr(verdict, "VERSION", verdict.VERSION + 1)

    rejudge_trials(list_run_trials(run.pk).values_list("pk", flat=True))

    assert list(run.trials.order_by("pk").values_list("structured_answers", "calls")) == counts
    assert sum(run.cells.values_list("structured_answers", flat=True)) == sum(structured for structured, _ in counts)


def test_rejudge_trials_of_changed_task_are_unknown(corrected: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = scenarios.lookup_scenario(STRICT)
    assert isinstance(scenario, StateScenario)
    monkeypatch.setattr(scenario, "rules", scenario.rules[:1])

    done = rejudge_trials(list_scenario_trials(STRICT).values_list("pk", flat=True))

    assert (done.judged, done.unknown) == (0, 2)
    assert set(Trial.objects.filter(scenario=STRICT).values_list("outcome", flat=True)) == {"fail"}


def test_rejudge_trials_of_rule_without_new_version_writes_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios.lookup_scenario(STRICT, 1), "behaviour", "")

    done = rejudge_trials(list_run_trials(run.pk).values_list("pk", flat=True))

    assert (done.judged, done.unversioned) == (0, 2)
    assert "without a new version" in done.sentence
    assert not Judgement.objects.exists()


def test_get_judgements_omits_verdicts_before_a_retry(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "VERSION", verdict.VERSION + 1)
    rejudge_trials(list_run_trials(run.pk).values_list("pk", flat=True))
    trial = Trial.objects.filter(scenario=STRICT)[0]
    Trial.objects.filter(pk=trial.pk).update(outcome="infra", failure_class="upstream_failed")
    retry_errored_trials(run.pk, confirmed_requests=99)
    assert trial.config.model is not None
    run_worker_session(trial.config.model)
    trial.refresh_from_db()

    assert get_judgements(trial) == ()


def draft(*reasons: str) -> CaseDraft:
    """Return a case that expects one call with one of these reasons."""
    expected = {"name": "cancel_order", "arguments": {"reason": {"$any_of": reasons}}}
    return CaseDraft(tools=CANCEL, message="Cancel order 17, it is late.", expect=json.dumps(expected))


def test_verdicts_before_a_retry_are_not_current(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    case = add_case(*parse_draft(draft("late")))
    with ScriptedServer(lambda seen: tool_call_reply(("cancel_order", {"reason": "too late"}))) as provider:
        model = make_scripted_model(provider)
        run = launch(build_run_request((case.slug,), model.pk, 2))
        run_worker_session(model)
        edit_case(case.slug, *parse_draft(draft("late", "too late")))
        ids = list(list_run_trials(run.pk).values_list("pk", flat=True))
        rejudge_trials(ids)
        Trial.objects.filter(pk=ids[0]).update(outcome="infra", failure_class="upstream_failed")
        retry_errored_trials(run.pk, confirmed_requests=99)
        run_worker_session(model)

    # The retried trial was judged by the version of the run's launch.
    assert [trial.outcome for trial in list_run_trials(run.pk)] == ["fail", "pass"]
    assert (get_judging_state(run.pk).outdated, get_judging_state(run.pk).rejudged) == (1, 1)
    with django_assert_num_queries(2):
        assert [now.trial_id for _, now in get_changes(run)] == [ids[1]]
    assert rejudge_trials(ids).judged == 1


def test_verdicts_of_newer_versions_are_kept(corrected: Run) -> None:
    ids = list(list_run_trials(corrected.pk).values_list("pk", flat=True))
    rejudge_trials(ids)
    Judgement.objects.filter(current=True).update(scenario_version=3)

    assert get_judging_state(corrected.pk).outdated == 0
    Trial.objects.filter(pk__in=ids).update(sentence="By a newer rule.")
    again = rejudge_trials(ids)
    assert (again.judged, again.unversioned, again.current) == (0, 2, 2)
    assert set(Judgement.objects.filter(current=True).values_list("scenario_version", flat=True)) == {3}


def test_rejudge_trials_of_corrected_test_case_changes_verdicts() -> None:
    case = add_case(*parse_draft(draft("late")))
    with ScriptedServer(lambda seen: tool_call_reply(("cancel_order", {"reason": "too late"}))) as provider:
        model = make_scripted_model(provider)
        run = launch(build_run_request((case.slug,), model.pk, 2))
        run_worker_session(model)
    assert check_replay(run.pk).same == 2
    edit_case(case.slug, *parse_draft(draft("late", "too late")))

    assert get_judging_state(run.pk).outdated == 2
    done = rejudge_trials(list_run_trials(run.pk).values_list("pk", flat=True))

    assert dict(done.changed_outcomes) == {("fail", "pass"): 2}
    assert {row.scenario_version for row in Judgement.objects.filter(current=True)} == {2}


def test_rejudge_trials_with_blank_final_text_fail_by_version_2(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer_blank_at_end(seen: ReceivedRequest) -> ScriptedReply:
        return text_reply("") if len(seen.json()["messages"]) > 5 else answer_correctly(seen)

    with monkeypatch.context() as before, ScriptedServer(answer_blank_at_end) as provider:
        before.setattr(verdict, "VERSION", 1)
        for version in scenarios.list_versions("happy_path"):
            before.setattr(version, "needs_final_text", False)
        model = make_scripted_model(provider)
        run = launch_run(model, scenarios=("happy_path",), trials=1)
        run_worker_session(model)
    trial = Trial.objects.get()
    assert (trial.outcome, trial.parity_pass) == ("pass", False)

    assert get_judging_state(run.pk).outdated == 1
    check = check_replay(run.pk)
    assert check.holds
    assert check.by_newer_rules == (f"trial {trial.pk} (happy_path): pass → empty_final, by version 2 of the rules.",)
    rejudge_trials([trial.pk])

    trial.refresh_from_db()
    assert (trial.outcome, trial.task_pass, trial.failure_class) == ("fail", False, "empty_final")
    assert (trial.parity_pass, trial.category) == (False, "ASSERTION_FAILED")
    assert [row.outcome for row in get_judgements(trial)] == ["pass", "fail"]


def test_check_replay_names_rule_only_for_a_verdict_that_it_changes(run: Run) -> None:
    first, second = run.trials.filter(scenario="happy_path").order_by("pk")
    verdict_before = {**first.verdict, "judging": 2}
    run.trials.filter(pk=first.pk).update(
        outcome="fail", task_pass=False, failure_class="wrong_arguments", verdict=verdict_before
    )
    run.trials.filter(pk=second.pk).update(end="LENGTH", verdict=verdict_before)
    third, fourth = run.trials.filter(scenario=STRICT).order_by("pk")
    for trial, version in ((third, 2), (fourth, 3)):
        verdict_before = {**trial.verdict, "judging": version}
        run.trials.filter(pk=trial.pk).update(parity_pass=not trial.parity_pass, verdict=verdict_before)

    check = check_replay(run.pk)

    assert set(check.by_newer_rules) == {
        f"trial {first.pk} (happy_path): wrong_arguments → pass, by version 3 of the rules.",
        f"trial {third.pk} ({STRICT}): parity_pass changed, by version 3 of the rules.",
    }
    assert set(check.differing) == {
        f"trial {second.pk} (happy_path): end differ.",
        f"trial {fourth.pk} ({STRICT}): parity_pass differ.",
    }


def test_rejudge_command_takes_run_or_scenario(corrected: Run) -> None:
    out = io.StringIO()

    call_command("rejudge", scenario=STRICT, stdout=out)

    assert "2 fail → pass" in out.getvalue()
    assert "(happy_path_parallel): fail → pass" in out.getvalue()
    with pytest.raises(CommandError, match="Name either a run or"):
        call_command("rejudge")


def test_replay_command_check_reports_equal_or_different_verdicts(run: Run) -> None:
    out = io.StringIO()

    call_command("replay", str(run.pk), check=True, stdout=out)

    assert "4 of 4 replayed trials have the same verdict and end" in out.getvalue()
    Trial.objects.filter(scenario=STRICT).update(failure_class="something_else")
    with pytest.raises(CommandError, match="does not reproduce"):
        call_command("replay", str(run.pk), check=True, stdout=out)
    assert "failure_class differ" in out.getvalue()
