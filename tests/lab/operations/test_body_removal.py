"""Removal of bodies by rules: what is deleted, what is kept, and the effect on later actions."""

from collections.abc import Mapping
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from tests.factories import make_cell, make_config, make_run, make_step, make_trial
from toolbench.lab.models import (
    AuditEntry,
    DecisionRecord,
    HumanVerdict,
    Run,
    Schedule,
    StepBody,
    Trial,
    TrialText,
)
from toolbench.lab.operations.body_removal import RetentionJob, preview_removal, remove_due_bodies
from toolbench.lab.operations.retention_policy import Kind, RetentionPolicy, save_retention_policy
from toolbench.lab.runs.control import retry_errored_trials
from toolbench.lab.traces.removed_bodies import explain_removed_bodies
from toolbench.lab.traces.search_text import update_search_texts

pytestmark = pytest.mark.django_db
PASSED_30 = RetentionPolicy({Kind.PASSED: 30})
EVERYTHING = RetentionPolicy(dict.fromkeys(Kind, 30))


def make_old(outcome: str = "pass", *, days: int = 40, run: Run | None = None, **fields: Any) -> Trial:
    """Make an old trial with one step of 3,000 bytes that do not compress, and a search text."""
    cell = make_cell(make_config(run or make_run()))
    at = timezone.now() - timedelta(days=days)
    trial = make_trial(cell, outcome, finished_at=at, final_text=b"The answer.", rendered_prompt=b"<s>", **fields)
    Run.objects.filter(pk=trial.run_id).update(created_at=at)
    noise = Random(7).randbytes(3_000)
    make_step(trial, bodies={"request": b'{"a": 1}', "response": noise, "facts": {"text": "x"}})
    update_search_texts()
    return trial


def list_removed() -> list[int]:
    return list(Trial.objects.exclude(bodies_removed_at=None).order_by("pk").values_list("pk", flat=True))


def test_remove_due_bodies_empties_bodies_and_keeps_verdict() -> None:
    trial = make_old(verdict={"rule": "r", "judging": 1}, duration_ms=12.5, sentence="Kept.")

    result = remove_due_bodies(PASSED_30)

    trial.refresh_from_db()
    body = StepBody.objects.get()
    assert (result.removed, result.last_id, result.is_complete) == (1, trial.pk, True)
    assert (bytes(body.request), bytes(body.response), bytes(body.facts)) == (b"", b"", b"{}")
    assert (bytes(trial.final_text), trial.rendered_prompt, trial.text_stale) == (b"", None, False)
    assert (trial.outcome, trial.duration_ms, trial.sentence, trial.verdict["rule"]) == ("pass", 12.5, "Kept.", "r")
    assert "by the rule “Passed trials after 30 days”" in explain_removed_bodies(trial)
    assert remove_due_bodies(PASSED_30).removed == 0


def test_remove_due_bodies_leaves_names_and_reasons_searchable() -> None:
    trial = make_old(sentence="Kept.")
    call = {"request": b'{"city": "Bern"}'}
    make_step(trial, kind="tool", ordinal=2, tool_name="get_weather", bodies=call)
    Trial.objects.update(text_stale=True)
    update_search_texts()
    before = TrialText.objects.get().text
    remove_due_bodies(PASSED_30)
    after = TrialText.objects.get().text
    assert [part in before for part in ("get_weather", "Kept.", "Bern", "The answer.")] == [True] * 4
    assert [part in after for part in ("get_weather", "Kept.", "Bern", "The answer.")] == [True, True, False, False]
    Trial.objects.update(text_stale=True)
    assert (update_search_texts(), TrialText.objects.get().text) == (1, after)


def test_remove_due_bodies_applies_rule_by_kind_and_age() -> None:
    passed, _failed, _young = make_old(), make_old("fail"), make_old(days=29)
    remove_due_bodies(PASSED_30)
    assert list_removed() == [passed.pk]


def test_remove_due_bodies_has_one_rule_per_kind() -> None:
    trials = {
        Kind.DELETED: make_old(run=make_run(deleted_at=timezone.now() - timedelta(days=40), simulated=True)),
        Kind.SIMULATED: make_old(run=make_run(simulated=True)),
        Kind.IMPORTED: make_old(run=make_run(imported=True)),
        Kind.PASSED: make_old(),
        Kind.FAILED: make_old("fail"),
        Kind.OTHER: make_old("infra"),
    }
    for kind, trial in trials.items():
        due = preview_removal(RetentionPolicy({kind: 30}))
        assert [(found.kind, found.trials) for found in due] == [(kind, 1)]
        remove_due_bodies(RetentionPolicy({kind: 30}))
        trial.refresh_from_db()
        assert trial.bodies_rule == f"{kind.label} after 30 days"


@pytest.mark.parametrize("outcome", ["infra", "cancelled", "na"])
def test_remove_due_bodies_names_the_outcomes_of_the_last_rule(outcome: str) -> None:
    trial = make_old(outcome)
    remove_due_bodies(RetentionPolicy({Kind.OTHER: 30}))
    trial.refresh_from_db()
    assert trial.bodies_rule == "Infrastructure errors, cancelled and not applicable trials after 30 days"


def test_remove_due_bodies_counts_age_from_import_or_deletion() -> None:
    imported = make_old(days=400, run=make_run(imported=True))
    Run.objects.filter(pk=imported.run_id).update(created_at=timezone.now())
    make_old(run=make_run(deleted_at=timezone.now()))
    assert remove_due_bodies(EVERYTHING).removed == 0


PINS: Mapping[str, Any] = {
    "run": lambda trial: Run.objects.update(keeps_bodies=True),
    "note": lambda trial: Trial.objects.update(note="Look at this."),
    "label": lambda trial: Trial.objects.update(label="odd"),
    "human verdict": lambda trial: HumanVerdict.objects.create(
        trial=trial, execution=1, username="ana", verdict="fail", reason="Wrong file."
    ),
    "baseline": lambda trial: Schedule.objects.create(
        requests_per_run=10, requests_per_month=10, next_due_at=timezone.now()
    ).baseline_runs.add(trial.run_id),
    "confirmation": lambda trial: DecisionRecord.objects.create(
        title="t", verdict="ship", sentence="s", confirmation=trial.run
    ),
}


@pytest.mark.parametrize("pin", PINS)
def test_remove_due_bodies_keeps_pinned_trials_until_run_is_deleted(pin: str) -> None:
    trial = make_old()
    PINS[pin](trial)
    assert remove_due_bodies(EVERYTHING).removed == 0
    Run.objects.update(deleted_at=timezone.now() - timedelta(days=31))
    assert remove_due_bodies(EVERYTHING).removed == 1


def test_remove_due_bodies_skips_running_and_unsent_trials() -> None:
    trial = make_old()
    Trial.objects.filter(pk=trial.pk).update(state=Trial.State.RUNNING)
    make_old("na", execution=0)
    assert remove_due_bodies(EVERYTHING).removed == 0


def test_preview_removal_counts_bytes_and_changes_nothing() -> None:
    make_old()
    make_old()
    (due,) = preview_removal(PASSED_30)
    assert due.trials == 2
    assert 6_000 < due.stored_bytes < 6_400
    assert due.rule == "Passed trials after 30 days"
    assert list_removed() == []
    assert preview_removal(RetentionPolicy({})) == ()


def test_remove_due_bodies_ends_at_time_limit_and_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolbench.lab.operations.body_removal.TRIALS_PER_BATCH", 1)
    first, second = make_old(), make_old()
    times = iter([0.0, 6.0])
    result = remove_due_bodies(PASSED_30, seconds=5.0, clock=lambda: next(times))
    assert (result.removed, result.last_id, result.is_complete) == (1, first.pk, False)
    assert remove_due_bodies(PASSED_30, after=result.last_id).last_id == second.pk


def test_retention_job_runs_daily_and_when_rules_change() -> None:
    now = 0.0
    job = RetentionJob(clock=lambda: now)
    make_old()
    assert job.run() == 0
    save_retention_policy(PASSED_30)
    assert job.run() == 1
    make_old()
    now = 3_600.0
    assert job.run() == 0
    now = 86_401.0
    assert job.run() == 1
    entries = AuditEntry.objects.filter(action="deleted").values_list("subject", flat=True)
    assert set(entries) == {"bodies of 1 trial, by the rules of retention"}


def test_retry_errored_trials_clears_removal_of_bodies(owner: User) -> None:
    trial = make_old("infra")
    remove_due_bodies(EVERYTHING)
    retry_errored_trials(trial.run_id, confirmed_requests=0)
    trial.refresh_from_db()
    assert (trial.state, trial.bodies_removed_at, trial.bodies_rule) == ("queued", None, "")
