"""Runs with sequential stopping."""

from typing import Any

import pytest

from tests.factories import (
    make_cell,
    make_config,
    make_model,
    make_provider,
    make_run,
    make_trial,
    make_trials,
    recompute_stale_cells,
)
from tests.lab.scripted_runs import (
    answer_correctly,
    build_request,
    launch_run,
    make_paid_model,
    make_scripted_model,
    run_worker_session,
)
from toolbench.evals.causes.table import read_taxonomy_version
from toolbench.evals.statistics.stopping import ANALYSIS_STEP_TRIALS, FIRST_ANALYSIS_TRIALS, StoppingRule
from toolbench.lab.maintenance import sweep
from toolbench.lab.metrics.cells import mark_stale
from toolbench.lab.metrics.tally import add_tallies, build_aggregates, build_tally, tally_cells
from toolbench.lab.models import Cell, JobFailure, Model, Run
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.run_request import LaunchError
from toolbench.lab.replays.what_if import ReplayScope, compute_totals, count_changes
from toolbench.lab.results.failures.page import get_failures
from toolbench.lab.results.failures.query import FailuresQuery
from toolbench.lab.results.matrix.export import export_matrix
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.table import get_matrix
from toolbench.lab.results.run.page import get_run_page
from toolbench.lab.runs import control
from toolbench.lab.runs.sequential_stopping import analyse_undecided_runs
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer, text_reply

pytestmark = pytest.mark.django_db(transaction=True)
AGAINST_70 = {"rule": "threshold", "target": 70}


def work_to_end(run: Run, *models: Model) -> None:
    """Run worker sessions until the run ends, as notifications of a running stack would start them."""
    for _ in range(20):
        for model in models:
            run_worker_session(model)
        run.refresh_from_db()
        if run.state != Run.State.RUNNING:
            return
    raise AssertionError(f"the run is still {run.state}")


def fail_control(seen: ReceivedRequest) -> ScriptedReply:
    """Answer tool scenarios correctly, and the control without the expected word."""
    return answer_correctly(seen) if seen.json().get("tools") else text_reply("Certainly not.")


def make_sequential_cell(*, until: dict[str, object] | None = None, most: int = 100, **fields: Any) -> Cell:
    until = until or AGAINST_70
    run = make_run(state=Run.State.RUNNING, until=until, trials_per_cell=most)
    return make_cell(make_config(run), error=StoppingRule.from_json(until).compute_cell_error(1), **fields)


def test_sequential_run_adds_trials_to_open_cells_only() -> None:
    with ScriptedServer(fail_control) as scripted:
        model = make_scripted_model(scripted)
        run = launch_run(model, scenarios=("happy_path", "chat_only"), trials=60, until=AGAINST_70)
        assert run.trial_count == run.trials.count() == 2 * FIRST_ANALYSIS_TRIALS
        work_to_end(run, model)
    good, bad = Cell.objects.get(run=run, scenario="happy_path"), Cell.objects.get(run=run, scenario="chat_only")
    assert (bad.decided, bad.failed, bad.passed) == ("below", FIRST_ANALYSIS_TRIALS, 0)
    assert (good.decided, good.passed, good.trials.count()) == (
        "above",
        FIRST_ANALYSIS_TRIALS + ANALYSIS_STEP_TRIALS,
        FIRST_ANALYSIS_TRIALS + ANALYSIS_STEP_TRIALS,
    )
    assert (run.state, run.trial_count) == (Run.State.FINISHED, 2 * FIRST_ANALYSIS_TRIALS + ANALYSIS_STEP_TRIALS)
    numbered = list(good.trials.order_by("position").values_list("index", "block"))
    assert sorted(numbered) == [
        (number, number) for number in range(1, FIRST_ANALYSIS_TRIALS + ANALYSIS_STEP_TRIALS + 1)
    ]


def test_analyse_undecided_runs_ends_open_cell_at_its_limit() -> None:
    cell = make_sequential_cell(most=12)
    make_trials(cell, **{"pass": 8, "fail": 2})
    assert analyse_undecided_runs() == 2
    cell.trials.filter(state="queued").update(state="done", outcome="pass", execution=1)
    assert analyse_undecided_runs() == 0
    cell.refresh_from_db()
    assert (cell.decided, cell.passed) == ("limit", 10)


def test_analyse_undecided_runs_waits_for_running_trial() -> None:
    cell = make_sequential_cell()
    make_trials(cell, **{"fail": 9, "running": 1})
    assert analyse_undecided_runs() == 0
    cell.refresh_from_db()
    assert cell.decided == ""


def test_sweep_keeps_run_with_open_cell_running() -> None:
    cell = make_sequential_cell()
    make_trials(cell, **{"pass": 8, "fail": 2})
    sweep()
    cell.run.refresh_from_db()
    assert cell.run.state == Run.State.RUNNING
    assert cell.trials.filter(state="queued").count() == ANALYSIS_STEP_TRIALS


def test_sweep_adds_no_trials_to_paused_run() -> None:
    cell = make_sequential_cell()
    make_trials(cell, **{"pass": 8, "fail": 2})
    control.pause_run(cell.run_id)
    sweep()
    assert cell.trials.count() == 10
    control.cancel_run(cell.run_id)
    cell.run.refresh_from_db()
    assert cell.run.state == Run.State.CANCELLED


def test_retried_and_added_trials_of_cancelled_run_start_no_rounds() -> None:
    cell = make_sequential_cell()
    make_trials(cell, **{"pass": 8, "fail": 1, "infra": 1})
    control.cancel_run(cell.run_id)
    for queue_one in (control.retry_errored_trials, lambda run_id: control.add_trials(run_id, cell.pk, 1)):
        queue_one(cell.run_id)
        cell.trials.filter(state="queued").update(state="done", outcome="pass", execution=1)
        mark_stale([cell.pk])
        sweep()
    cell.refresh_from_db()
    assert (cell.decided, cell.passed, cell.trials.count()) == ("cancelled", 10, 11)
    assert Run.objects.get().state == Run.State.FINISHED


def test_resumed_sequential_run_needs_confirmation_of_all_its_rounds() -> None:
    model = make_model(provider=make_provider(max_attempts=2))
    run = launch_run(model, trials=60, until=AGAINST_70, overrides={"max_turns": 4})
    control.cancel_run(run.pk)
    with pytest.raises(PaidRequestsUnconfirmedError, match="up to 720 requests to Example"):
        control.resume_cancelled_run(run.pk, confirmed_requests=719)
    assert run.cells.get().decided == "cancelled"
    assert control.resume_cancelled_run(run.pk, confirmed_requests=720) == FIRST_ANALYSIS_TRIALS
    assert run.cells.get().decided == ""


def test_sequential_run_keeps_request_limit(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    run = launch_run(model, trials=60, until={"rule": "threshold", "target": 95}, request_cap=40)
    run_worker_session(model)
    for _ in range(3):
        run_worker_session(model)
        sweep()
    run.refresh_from_db()
    assert (run.state, run.requests_reserved, len(scripted.seen)) == (Run.State.PAUSED, 40, 40)


def test_analyse_undecided_runs_ends_cell_of_repeated_answers() -> None:
    cell = make_sequential_cell(deterministic=True)
    for _ in range(10):
        make_trial(cell, "pass", answer_hash="same")
    recompute_stale_cells()
    analyse_undecided_runs()
    cell.refresh_from_db()
    assert cell.decided == "repeats"


def test_analyse_undecided_runs_best_rule_compares_all_cells() -> None:
    run = make_run(state=Run.State.RUNNING, until={"rule": "best"}, trials_per_cell=200)
    cells = [make_cell(make_config(run, make_model(name)), error=0.05 / 3) for name in ("good", "fair", "bad")]
    for cell, passed in zip(cells, (20, 18, 2), strict=True):
        make_trials(cell, **{"pass": passed, "fail": 20 - passed})
    assert analyse_undecided_runs() == 2 * ANALYSIS_STEP_TRIALS
    words = list(run.cells.order_by("pk").values_list("decided", flat=True))
    assert words == ["", "", "beaten"]


def test_build_plan_refuses_best_of_one_and_unknown_rule(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    with pytest.raises(LaunchError, match="at least two configurations"):
        build_plan(build_request(model, until={"rule": "best"}))
    with pytest.raises(LaunchError, match="There is no rule luck"):
        build_plan(build_request(model, until={"rule": "luck"}))


def test_build_plan_of_sequential_run_has_least_and_most_trials(scripted: ScriptedServer) -> None:
    plan = build_plan(build_request(make_paid_model(scripted), trials=60, until=AGAINST_70))
    assert (plan.least_trials, plan.trials, plan.least_requests) == (
        FIRST_ANALYSIS_TRIALS,
        60,
        2 * FIRST_ANALYSIS_TRIALS,
    )
    assert list(plan.paid_requests.values()) == [plan.most_requests]


def test_tally_of_sequential_cells_has_anytime_valid_intervals() -> None:
    cell = make_sequential_cell()
    make_trials(cell, **{"pass": 36, "fail": 4})
    cell.refresh_from_db()
    fixed = make_cell(cell.config, "long_arguments_guard")
    make_trials(fixed, **{"pass": 36, "fail": 4})
    fixed.refresh_from_db()
    alone = tally_cells([cell]).compute_answered_success(90)
    assert (alone.low_percent, alone.high_percent, alone.interval_name) == ("69", "99", "anytime-valid, 95 %")
    together = tally_cells([cell, fixed]).compute_end_to_end_success()
    grouped = Cell.objects.filter(run=cell.run).order_by().values("run_id").annotate(**build_aggregates()).get()
    same = add_tallies([tally_cells([cell]), tally_cells([fixed])]).compute_end_to_end_success()
    assert together == same == build_tally(grouped).compute_end_to_end_success()
    assert together.error == 0.05
    assert tally_cells([fixed]).compute_end_to_end_success().interval_name == "Wilson, 95 %"


def test_get_run_page_names_stopping_rule_and_decision_of_cells() -> None:
    cell = make_sequential_cell()
    make_trials(cell, **{"fail": 10})
    open_cell = make_cell(cell.config, "long_arguments_guard", error=0.05)
    make_trials(open_cell, **{"pass": 9, "fail": 1})
    analyse_undecided_runs()
    page = get_run_page(cell.run_id)
    assert page.stopping_rule == "answered success against 70 %, error 5 % a cell"
    assert [line.decision_text for line in page.config_rows[0].scenarios] == ["decided: below the target", "open"]
    assert page.config_rows[0].answered.interval_name == "anytime-valid, 95 %"


def test_matrix_and_export_name_anytime_valid_intervals() -> None:
    make_trials(make_sequential_cell(), **{"pass": 36, "fail": 4})
    query = MatrixQuery(scope="real")
    assert get_matrix(query).warnings == ("Some cells used sequential stopping: their intervals are anytime-valid.",)
    table = export_matrix(query)
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert (row["given_low"], row["given_high"], row["interval"]) == (0.689, 0.9879, "anytime-valid, 95 %")


def test_failures_and_what_if_name_anytime_valid_intervals() -> None:
    cell = make_sequential_cell()
    make_trials(cell, **{"pass": 8})
    make_trial(cell, "fail", cause="no_call", cause_signature="no_call · happy_path", taxonomy=read_taxonomy_version())
    recompute_stale_cells()
    row = get_failures(FailuresQuery(runs=(cell.run_id,))).heat_map.rows[0].cells[0]
    assert row is not None
    assert row.rate.interval_name == "anytime-valid, 95 %"
    totals = compute_totals(count_changes([]), ReplayScope("run", cell.run_id).get_stopping())
    assert (totals.before.interval_name, totals.after.highest.interval_name) == (
        "anytime-valid, 95 %",
        "anytime-valid, 95 %",
    )


def test_analyse_undecided_runs_skips_run_with_unreadable_rule() -> None:
    bad, good = make_sequential_cell(most=12), make_sequential_cell(most=12)
    for cell in (bad, good):
        make_trials(cell, **{"pass": 8, "fail": 2})
    Run.objects.filter(pk=bad.run_id).update(until={"rule": "no such rule", "target": "x"})
    assert analyse_undecided_runs() == 2
    assert good.trials.filter(state="queued").count() == 2
    assert JobFailure.objects.get().job == "continuing undecided runs"
