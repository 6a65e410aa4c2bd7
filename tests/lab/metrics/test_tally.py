"""Tallies: two rates from one set of counts, and no interval if repeats are not independent."""

import pytest

from tests.factories import make_cell, make_config, make_run, make_trial, make_trials, recompute_stale_cells
from toolbench.lab.management.eval.output import render_run_lines
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.tally import add_tallies, build_aggregates, build_tally, tally_cells
from toolbench.lab.models import Cell
from toolbench.lab.results.matrix.details import get_row_details
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.table import get_matrix
from toolbench.lab.results.run.index import get_runs
from toolbench.lab.results.run.page import get_run_page
from toolbench.lab.results.trial.page import get_trial_page
from toolbench.lab.results.trial_list.filter import TrialFilter

pytestmark = pytest.mark.django_db


@pytest.fixture
def repeating() -> Cell:
    cell = make_cell(make_config(make_run()), deterministic=True)
    for _ in range(4):
        make_trial(cell, answer_hash="the same")
    recompute_stale_cells()
    return Cell.objects.get()


def test_tally_of_repeated_answers_withholds_both_intervals(repeating: Cell) -> None:
    counts = tally_cells([repeating])
    assert counts.compute_answered_success().withheld
    assert counts.compute_end_to_end_success().withheld
    assert add_tallies([counts, tally_cells([])]).compute_answered_success().withheld


def test_pages_and_eval_withhold_interval_of_repeated_answers(repeating: Cell) -> None:
    panel = get_row_details(get_matrix(MatrixQuery(scope="real", cell=str(repeating.config_id))))
    assert panel is not None
    page, trial_page = get_run_page(repeating.run_id), get_trial_page(repeating.trials.all()[0].pk, TrialFilter())
    line = page.config_rows[0]
    shown: list[Rate | None] = [
        panel.answered,
        panel.delivered,
        panel.scenario_details[0].answered,
        line.answered,
        line.delivered,
    ]
    listed = get_runs("own")[0]
    shown += [line.scenarios[0].answered, trial_page.answered, trial_page.delivered, listed.answered, listed.delivered]
    assert all(rate is not None and rate.withheld for rate in shown)
    assert panel.more_trials is None
    expected_line = "tools: answered success 4/4, 1 distinct, end-to-end success 4/4, 1 distinct"
    assert next(iter(render_run_lines(repeating.run, each_cell=False))) == expected_line


def test_render_run_lines_has_one_line_per_group() -> None:
    config = make_config(make_run())
    for scenario, group, passed in (
        ("happy_path", "tools", 3),
        ("agent_sql", "agents", 1),
        ("chat_only", "control", 2),
    ):
        make_trials(make_cell(config, scenario, scenario_group=group), **{"pass": passed})
    lines = list(render_run_lines(config.run, each_cell=False))
    assert [line.partition(" (")[0] for line in lines] == [
        "tools: answered success 3/3", "agents: answered success 1/1",
        "control: answered success 2/2",
    ]  # fmt: skip


def test_tally_of_different_answers_keeps_intervals() -> None:
    cell = make_cell(make_config(make_run()), deterministic=True)
    make_trials(cell, **{"pass": 4, "infra": 2})
    cell.refresh_from_db()
    assert not tally_cells([cell]).compute_answered_success().withheld
    assert not tally_cells([cell]).compute_end_to_end_success().withheld


def test_tally_with_a_trial_without_an_answer_keeps_intervals() -> None:
    cell = make_cell(make_config(make_run()), deterministic=True)
    for outcome, answer_hash in (("pass", "a"), ("pass", "b"), ("pass", "c"), ("fail", "")):
        make_trial(cell, outcome, answer_hash=answer_hash)
    recompute_stale_cells()
    cell.refresh_from_db()
    counts = tally_cells([cell])
    assert (counts.answered, counts.distinct, counts.compute_answered_success().withheld) == (4, 3, False)
    assert build_tally(Cell.objects.order_by().values("run_id").annotate(**build_aggregates()).get()) == counts


def test_build_tally_of_aggregates_equals_tally_cells(repeating: Cell) -> None:
    line = Cell.objects.order_by().values("run_id").annotate(**build_aggregates()).get()
    assert build_tally(line) == tally_cells([repeating])
