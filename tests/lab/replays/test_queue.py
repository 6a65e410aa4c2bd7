from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from tests.page_html import read_html
from toolbench.lab.models import Cell, Judgement, Preset, Replay, StepBody
from toolbench.lab.replays import what_if_page
from toolbench.lab.replays.queue import run_replay
from toolbench.lab.replays.what_if import ReplayScope
from toolbench.lab.replays.what_if_page import WhatIfPage, get_what_if_page
from toolbench.lab.replays.what_if_settings import WhatIfSettings
from toolbench.lab.worker.job_failures import list_recent_failures
from toolbench.providers.scripted_server import ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)
SHORT = WhatIfSettings(limits=(("max_turns", 2),))


@pytest.fixture
def cell(scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Cell:
    """A cell that is too large for one page view, with two trials allowed in one."""
    monkeypatch.setattr(what_if_page, "MAX_TRIALS_AT_ONCE", 2)
    model = make_scripted_model(scripted)
    run = launch_run(model, trials=3)
    run_worker_session(model)
    return run.cells.get()


def look(cell: Cell, asked: WhatIfSettings = SHORT) -> WhatIfPage:
    return get_what_if_page(ReplayScope("cell", cell.pk), asked)


def test_of_many_trials_no_transform_is_left_out_and_that_is_said(cell: Cell) -> None:
    asked = get_what_if_page(ReplayScope("cell", cell.pk), SHORT, with_ablation=True)
    assert asked.waiting is not None
    run_replay(asked.waiting.pk)
    told = get_what_if_page(ReplayScope("cell", cell.pk), SHORT, with_ablation=True)
    assert (told.ablations, "too many trials for leaving out each transform" in told.hint) == ((), True)
    assert "transform" not in look(cell).hint


def test_what_was_found_before_trials_were_judged_again_is_found_anew(cell: Cell) -> None:
    asked = look(cell)
    assert asked.waiting is not None
    run_replay(asked.waiting.pk)
    assert look(cell).waiting is None
    trial = cell.trials.all()[0]
    versions = {"scenario_version": trial.scenario_version, "judging_version": 9}
    Judgement.objects.create(trial=trial, outcome="pass", judged_at=timezone.now(), **versions)
    assert look(cell).waiting is not None


def test_large_replay_runs_in_worker_and_page_shows_progress(cell: Cell) -> None:
    before = look(cell)
    assert before.waiting is not None
    assert (before.waiting.done, before.waiting.total) == (0, 3)

    run_replay(before.waiting.pk)
    after = look(cell)

    assert after.waiting is None
    assert after.totals is not None
    assert after.totals.sentence == "3 pass → fail"
    assert [item.after for item, _ in after.changes] == ["fail"] * 3
    assert after.requests == (9, 9)
    assert Replay.objects.count() == 1


def test_replay_row_is_run_by_one_worker_and_resumed_when_lost(cell: Cell) -> None:
    row = look(cell).waiting
    assert row is not None
    Replay.objects.update(state="running", lease=uuid4(), lease_until=timezone.now() + timedelta(seconds=60))
    run_replay(row.pk)
    assert Replay.objects.get().state == "running"

    Replay.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    run_replay(row.pk)

    assert Replay.objects.get().state == "done"


def test_a_replay_of_fewer_trials_than_there_are_now_is_done_again(cell: Cell) -> None:
    row = look(cell).waiting
    assert row is not None
    run_replay(row.pk)
    Replay.objects.update(total=2)

    assert look(cell).waiting is not None


def test_settings_that_do_not_go_together_end_the_row_in_words(cell: Cell) -> None:
    Preset.objects.create(name="bad", patch={"no_such_key": 1})
    row = look(cell, WhatIfSettings(presets=("bad",))).waiting
    assert row is not None

    run_replay(row.pk)

    assert "no_such_key" in look(cell, WhatIfSettings(presets=("bad",))).refused


def test_replay_failed_within_toolbench_shows_progress_and_can_be_retried(cell: Cell, owner_client: Client) -> None:
    row, address = look(cell).waiting, f"cell={cell.pk}&max_turns=2"
    assert row is not None
    whole = {body.pk: bytes(body.facts) for body in StepBody.objects.all()}
    StepBody.objects.update(facts=b"no JSON")
    run_replay(row.pk)
    shown = read_html(owner_client.get(f"/what-if/?{address}"))
    assert "Toolbench itself failed (JSONDecodeError)" in shown
    assert "after 0 of 3 trials" in shown

    for pk, facts in whole.items():
        StepBody.objects.filter(pk=pk).update(facts=facts)
    waiting = owner_client.post(f"/what-if/again/?{address}", follow=True).context["page"].waiting
    assert owner_client.post(f"/what-if/again/?{address}").status_code == 302
    run_replay(waiting.pk)
    assert look(cell).totals is not None
    assert owner_client.post("/what-if/again/").status_code == 404


def test_nothing_is_queued_before_other_settings_are_chosen(cell: Cell) -> None:
    found = look(cell, WhatIfSettings())

    assert "Choose other settings" in found.hint
    assert not Replay.objects.exists()


def test_what_if_that_stops_every_worker_ends_with_a_sentence(cell: Cell, owner_client: Client) -> None:
    row = look(cell).waiting
    assert row is not None
    Replay.objects.update(state="running", attempts=4, lease_until=timezone.now() - timedelta(seconds=1))
    run_replay(row.pk)
    shown = read_html(owner_client.get(f"/what-if/?cell={cell.pk}&max_turns=2"))
    assert "The worker stopped four times at this what-if. There is no result." in shown

    waiting = owner_client.post(f"/what-if/again/?cell={cell.pk}&max_turns=2", follow=True).context["page"].waiting
    run_replay(waiting.pk)
    assert look(cell).totals is not None


@pytest.mark.parametrize(("kind", "job"), [("cell", "a what-if"), (Replay.REJUDGE, "judging again")])
def test_failed_replay_is_counted_by_its_kind(cell: Cell, kind: str, job: str) -> None:
    scope_id = cell.pk if kind == "cell" else cell.run_id
    row = Replay.objects.create(kind=kind, scope_id=scope_id, query=SHORT.render_query() if kind == "cell" else "")
    StepBody.objects.update(facts=b"no JSON")
    run_replay(row.pk)
    row.refresh_from_db()
    assert (row.state, "Toolbench itself failed" in row.refused) == ("done", True)
    assert [(failure.job, failure.error) for failure in list_recent_failures()] == [(job, "JSONDecodeError")]
