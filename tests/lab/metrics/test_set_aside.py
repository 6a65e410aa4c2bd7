"""A cell whose sums are out of range is set aside alone."""

import pytest

from tests.factories import make_cell, make_config, make_run, make_step, make_trial
from tests.lab.scripted_runs import read_counters
from toolbench.lab.maintenance import sweep
from toolbench.lab.metrics.cells import (
    OUT_OF_RANGE_ERROR,
    mark_stale,
    mark_uncomputable_stale,
    recompute_all_stale,
    recompute_immediately,
    recompute_stale,
)
from toolbench.lab.metrics.definitions import compute_tokens_per_trial
from toolbench.lab.metrics.tally import build_aggregates, build_tally, tally_cells
from toolbench.lab.models import Cell, Run, Trial
from toolbench.lab.runs import control

pytestmark = pytest.mark.django_db(transaction=True)

# A trial can store each value, but two of them are out of range as a sum.
POISON = {
    "input_tokens": 2**63 - 1,
    "output_tokens": 2**62,
    "reasoning_tokens": 2**63 - 1,
    "requests": 2**31 - 1,
    "calls": 2**31 - 1,
    "duration_ms": 1.7e308,
    "first_token_ms": 1.7e308,
}


def make_empty_cell(**fields: object) -> Cell:
    return make_cell(make_config(make_run(**fields)))


def make_poisoned_cell(column: str, **fields: object) -> Cell:
    cell = make_empty_cell(**fields)
    for outcome in ("pass", "fail"):
        make_trial(cell, outcome, **{column: POISON[column]})
    return cell


def reload(cell: Cell) -> Cell:
    return Cell.objects.get(pk=cell.pk)


@pytest.mark.parametrize("column", POISON)
def test_recompute_stale_sets_cell_out_of_range_aside(column: str) -> None:
    innocent = [make_empty_cell(), make_poisoned_cell(column), make_empty_cell()]
    bad = innocent.pop(1)
    beside = make_cell(bad.config, "chat_only")
    for cell in (*innocent, beside):
        make_trial(cell, "pass")
    assert recompute_stale() == 4
    assert recompute_stale() == 0
    for cell in (*innocent, beside):
        assert (reload(cell).passed, reload(cell).input_tokens, reload(cell).compute_error) == (1, 400, "")
    bad = reload(bad)
    assert (bad.passed, bad.failed, bad.stale) == (1, 1, False)
    assert (bad.input_tokens, bad.requests, bad.cost, bad.p50_ms, bad.upstreams) == (0, 0, None, None, [])
    assert bad.compute_error in ("bigint out of range", "integer out of range", OUT_OF_RANGE_ERROR)


def test_mark_uncomputable_stale_computes_corrected_cell_again() -> None:
    bad, plain = make_poisoned_cell("input_tokens"), make_empty_cell()
    make_trial(plain, "pass")
    make_trial(plain, "fail")
    recompute_stale()
    Trial.objects.filter(cell=bad).update(input_tokens=400)
    assert mark_uncomputable_stale() == 1
    recompute_stale()
    names = ("run", "config")
    assert reload(bad).compute_error == ""
    bad_counts, plain_counts = read_counters(reload(bad)), read_counters(reload(plain))
    differing = {name for name in bad_counts if name not in names and bad_counts[name] != plain_counts[name]}
    assert differing == set()


def test_recompute_stale_cell_set_aside_loses_earlier_sums() -> None:
    cell = make_empty_cell()
    make_trial(cell, "pass", cost=0.5)
    recompute_stale()
    assert reload(cell).input_tokens == 400
    make_trial(cell, "pass", input_tokens=2**63 - 1)
    mark_stale([cell.pk])
    recompute_stale()
    assert (reload(cell).passed, reload(cell).input_tokens, reload(cell).cost) == (2, 0, None)


def test_sweep_finishes_runs_with_cell_set_aside() -> None:
    bad, plain = make_poisoned_cell("input_tokens", state=Run.State.RUNNING), make_empty_cell(state=Run.State.RUNNING)
    make_trial(plain, "pass")
    sweep()
    assert set(Run.objects.values_list("state", flat=True)) == {Run.State.FINISHED}
    assert reload(bad).compute_error


def test_sweep_decides_undecided_cell_set_aside() -> None:
    until = {"rule": "threshold", "rate": "given", "target": 90}
    bad = make_poisoned_cell("input_tokens", state=Run.State.RUNNING, until=until, trials_per_cell=2)
    Cell.objects.filter(pk=bad.pk).update(error=0.05)
    sweep()
    assert reload(bad).decided == "limit"
    assert Run.objects.get().state == Run.State.FINISHED


@pytest.mark.parametrize("run_action", [recompute_all_stale, control.delete_run, control.cancel_run])
def test_run_actions_succeed_with_cell_set_aside(run_action: object) -> None:
    bad = make_poisoned_cell("calls", state=Run.State.RUNNING)
    make_trial(bad, "queued")
    assert callable(run_action)
    run_action(bad.run_id)
    sweep()
    assert (reload(bad).stale, bool(reload(bad).compute_error)) == (False, True)


def test_recompute_immediately_sets_cell_out_of_range_aside() -> None:
    bad = make_poisoned_cell("output_tokens")
    recompute_immediately([bad.pk])
    assert reload(bad).compute_error


def test_tally_with_cell_set_aside_has_unknown_tokens() -> None:
    bad = make_poisoned_cell("input_tokens")
    make_trial(make_cell(bad.config, "chat_only"), "pass")
    recompute_stale()
    (line,) = Cell.objects.order_by().values("run_id").annotate(**build_aggregates())
    for tally in (tally_cells(Cell.objects.all()), build_tally(line)):
        assert (tally.uncomputed_cells, tally.passed, tally.cost, compute_tokens_per_trial(tally)) == (1, 2, None, None)


@pytest.mark.parametrize("cost", [1.7e308, float("nan"), float("inf"), -1.0])
def test_recompute_stale_impossible_cost_is_unknown(cost: float) -> None:
    cell = make_empty_cell()
    for outcome in ("pass", "fail"):
        make_step(make_trial(cell, outcome, cost=cost, execution=2), execution=1, cost=cost)
    recompute_stale()
    cell = reload(cell)
    assert (cell.passed, cell.requests, cell.cost, cell.compute_error) == (1, 6, None, "")
