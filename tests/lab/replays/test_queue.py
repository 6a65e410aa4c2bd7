from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from tests.page_html import read_html
from toolbench.lab.models import Cell, Judgement, Model, Preset, Replay, RunConfig, Trial
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
    """Return a cell of three trials, with two as the limit for a replay within a page view."""
    monkeypatch.setattr(what_if_page, "MAX_TRIALS_AT_ONCE", 2)
    model = make_scripted_model(scripted)
    run = launch_run(model, trials=3)
    run_worker_session(model)
    return run.cells.get()


def read_page(cell: Cell, settings: WhatIfSettings = SHORT) -> WhatIfPage:
    return get_what_if_page(ReplayScope("cell", cell.pk), settings)


def test_get_what_if_page_of_many_trials_has_no_ablation(cell: Cell) -> None:
    waiting_page = get_what_if_page(ReplayScope("cell", cell.pk), SHORT, with_ablation=True)
    assert waiting_page.waiting is not None
    run_replay(waiting_page.waiting.pk)
    page = get_what_if_page(ReplayScope("cell", cell.pk), SHORT, with_ablation=True)
    assert (page.ablations, "too many trials to leave out each transform" in page.hint) == ((), True)
    assert "transform" not in read_page(cell).hint


def test_get_what_if_page_after_rejudging_replays_again(cell: Cell) -> None:
    waiting_page = read_page(cell)
    assert waiting_page.waiting is not None
    run_replay(waiting_page.waiting.pk)
    assert read_page(cell).waiting is None
    trial = cell.trials.all()[0]
    versions = {"scenario_version": trial.scenario_version, "judging_version": 9}
    tomorrow = timezone.now() + timedelta(days=1)
    judgement = Judgement.objects.create(trial=trial, outcome="pass", judged_at=tomorrow, **versions)
    assert read_page(cell).waiting is None
    judgement.judged_at = timezone.now()
    judgement.save()
    assert read_page(cell).waiting is not None


def test_get_what_if_page_with_changed_preset_replays_again(cell: Cell) -> None:
    preset, settings = Preset.objects.create(name="own", patch={"max_turns": 2}), WhatIfSettings(presets=("own",))
    unrelated = Preset.objects.create(name="unrelated", patch={"max_turns": 2})
    row = read_page(cell, settings).waiting
    assert row is not None
    run_replay(row.pk)
    unrelated.patch = preset.patch = {"max_turns": 8}
    unrelated.save()
    assert read_page(cell, settings).waiting is None
    preset.save()
    assert read_page(cell, settings).waiting is not None


def test_get_what_if_page_with_changed_workarounds_replays_again(cell: Cell) -> None:
    row = read_page(cell, WhatIfSettings(strategy="production")).waiting
    assert row is not None
    run_replay(row.pk)
    Model.objects.update(workarounds=["text_calls_healed"])
    assert read_page(cell, WhatIfSettings(strategy="production")).waiting is not None


def test_get_what_if_page_with_workarounds_of_same_name_replays_again(cell: Cell) -> None:
    settings = WhatIfSettings(strategy="production")
    RunConfig.objects.update(model=None)  # as if the model had been deleted and added again
    row = read_page(cell, settings).waiting
    assert row is not None
    run_replay(row.pk)
    assert read_page(cell, settings).waiting is None
    Model.objects.update(workarounds=["text_calls_healed"])
    assert read_page(cell, settings).waiting is not None


def test_get_what_if_page_with_trial_executed_again_replays_again(cell: Cell) -> None:
    row = read_page(cell).waiting
    assert row is not None
    run_replay(row.pk)
    trial = cell.trials.all()[0]
    Trial.objects.filter(pk=trial.pk).update(finished_at=timezone.now() + timedelta(days=1))
    assert read_page(cell).waiting is None
    Trial.objects.filter(pk=trial.pk).update(finished_at=timezone.now())
    assert read_page(cell).waiting is not None


def test_run_replay_of_large_scope_shows_progress_and_result(cell: Cell) -> None:
    before = read_page(cell)
    assert before.waiting is not None
    assert (before.waiting.done, before.waiting.total) == (0, 3)

    run_replay(before.waiting.pk)
    after = read_page(cell)

    assert after.waiting is None
    assert after.totals is not None
    assert after.totals.sentence == "3 pass → fail"
    assert [item.after for item, _ in after.changes] == ["fail"] * 3
    assert after.requests == (9, 9)
    assert Replay.objects.count() == 1


def test_run_replay_leaves_leased_row_and_resumes_lost_one(cell: Cell) -> None:
    row = read_page(cell).waiting
    assert row is not None
    Replay.objects.update(state="running", lease=uuid4(), lease_until=timezone.now() + timedelta(seconds=60))
    run_replay(row.pk)
    assert Replay.objects.get().state == "running"

    Replay.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    run_replay(row.pk)

    assert Replay.objects.get().state == "done"


def test_get_what_if_page_with_new_trials_replays_again(cell: Cell) -> None:
    row = read_page(cell).waiting
    assert row is not None
    run_replay(row.pk)
    Replay.objects.update(total=2)

    assert read_page(cell).waiting is not None


def test_run_replay_invalid_settings_are_refused_on_page(cell: Cell) -> None:
    Preset.objects.create(name="bad", patch={"no_such_key": 1})
    row = read_page(cell, WhatIfSettings(presets=("bad",))).waiting
    assert row is not None

    run_replay(row.pk)

    assert "no_such_key" in read_page(cell, WhatIfSettings(presets=("bad",))).refused


def test_what_if_page_internal_error_shows_progress_and_can_be_retried(cell: Cell, owner_client: Client) -> None:
    row, address = read_page(cell).waiting, f"cell={cell.pk}&max_turns=2"
    assert row is not None
    layers = RunConfig.objects.get().layers
    RunConfig.objects.update(layers=3)
    run_replay(row.pk)
    html = read_html(owner_client.get(f"/what-if/?{address}"))
    assert "Toolbench itself failed (TypeError)" in html
    assert "after 0 of 3 trials" in html

    RunConfig.objects.update(layers=layers)
    waiting = owner_client.post(f"/what-if/again/?{address}", follow=True).context["page"].waiting
    assert owner_client.post(f"/what-if/again/?{address}").status_code == 302
    run_replay(waiting.pk)
    assert read_page(cell).totals is not None
    assert owner_client.post("/what-if/again/").status_code == 404


def test_get_what_if_page_without_changed_settings_queues_nothing(cell: Cell) -> None:
    found = read_page(cell, WhatIfSettings())

    assert "Choose other settings" in found.hint
    assert not Replay.objects.exists()


def test_run_replay_that_stopped_four_workers_ends_with_sentence(cell: Cell, owner_client: Client) -> None:
    row = read_page(cell).waiting
    assert row is not None
    Replay.objects.update(state="running", attempts=4, lease_until=timezone.now() - timedelta(seconds=1))
    run_replay(row.pk)
    html = read_html(owner_client.get(f"/what-if/?cell={cell.pk}&max_turns=2"))
    assert "The worker stopped four times during this what-if, so there is no result." in html

    waiting = owner_client.post(f"/what-if/again/?cell={cell.pk}&max_turns=2", follow=True).context["page"].waiting
    run_replay(waiting.pk)
    assert read_page(cell).totals is not None


@pytest.mark.parametrize(("kind", "job"), [("cell", "a what-if"), (Replay.REJUDGE, "re-judging")])
def test_run_replay_failure_is_counted_by_kind(cell: Cell, kind: str, job: str) -> None:
    scope_id = cell.pk if kind == "cell" else cell.run_id
    row = Replay.objects.create(kind=kind, scope_id=scope_id, query=SHORT.render_query() if kind == "cell" else "")
    RunConfig.objects.update(layers=3)
    run_replay(row.pk)
    row.refresh_from_db()
    assert (row.state, "Toolbench itself failed" in row.refused) == ("done", True)
    assert [(failure.job, failure.error) for failure in list_recent_failures()] == [(job, "TypeError")]
