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

# Each is stored in a trial by SQL and cannot be added up, twice or at all.
POISON = {
    "input_tokens": 2**63 - 1,
    "output_tokens": 2**62,
    "reasoning_tokens": 2**63 - 1,
    "requests": 2**31 - 1,
    "calls": 2**31 - 1,
    "duration_ms": 1.7e308,
    "first_token_ms": 1.7e308,
}


def a_cell(**fields: object) -> Cell:
    return make_cell(make_config(make_run(**fields)))


def poisoned(column: str, **fields: object) -> Cell:
    cell = a_cell(**fields)
    for outcome in ("pass", "fail"):
        make_trial(cell, outcome, **{column: POISON[column]})
    return cell


def refreshed(cell: Cell) -> Cell:
    return Cell.objects.get(pk=cell.pk)


@pytest.mark.parametrize("column", POISON)
def test_cell_out_of_range_is_set_aside_and_others_computed(column: str) -> None:
    innocent = [a_cell(), poisoned(column), a_cell()]
    bad = innocent.pop(1)
    beside = make_cell(bad.config, "chat_only")
    for cell in (*innocent, beside):
        make_trial(cell, "pass")
    assert recompute_stale() == 4
    assert recompute_stale() == 0
    for cell in (*innocent, beside):
        assert (refreshed(cell).passed, refreshed(cell).input_tokens, refreshed(cell).compute_error) == (1, 400, "")
    bad = refreshed(bad)
    assert (bad.passed, bad.failed, bad.stale) == (1, 1, False)
    assert (bad.input_tokens, bad.requests, bad.cost, bad.p50_ms, bad.upstreams) == (0, 0, None, None, [])
    assert bad.compute_error in ("bigint out of range", "integer out of range", OUT_OF_RANGE_ERROR)


def test_cell_is_computed_again_when_its_trials_are_healed() -> None:
    bad, plain = poisoned("input_tokens"), a_cell()
    make_trial(plain, "pass")
    make_trial(plain, "fail")
    recompute_stale()
    Trial.objects.filter(cell=bad).update(input_tokens=400)
    assert mark_uncomputable_stale() == 1
    recompute_stale()
    names = ("run", "config")
    assert refreshed(bad).compute_error == ""
    bad_counts, plain_counts = read_counters(refreshed(bad)), read_counters(refreshed(plain))
    differing = {name for name in bad_counts if name not in names and bad_counts[name] != plain_counts[name]}
    assert differing == set()


def test_sums_that_were_known_are_not_kept_for_a_cell_set_aside() -> None:
    cell = a_cell()
    make_trial(cell, "pass", cost=0.5)
    recompute_stale()
    assert refreshed(cell).input_tokens == 400
    make_trial(cell, "pass", input_tokens=2**63 - 1)
    mark_stale([cell.pk])
    recompute_stale()
    assert (refreshed(cell).passed, refreshed(cell).input_tokens, refreshed(cell).cost) == (2, 0, None)


def test_both_runs_finish_beside_a_cell_set_aside() -> None:
    bad, plain = poisoned("input_tokens", state=Run.State.RUNNING), a_cell(state=Run.State.RUNNING)
    make_trial(plain, "pass")
    sweep()
    assert set(Run.objects.values_list("state", flat=True)) == {Run.State.FINISHED}
    assert refreshed(bad).compute_error


def test_undecided_run_with_a_cell_set_aside_is_decided() -> None:
    until = {"rule": "threshold", "rate": "given", "target": 90}
    bad = poisoned("input_tokens", state=Run.State.RUNNING, until=until, trials_per_cell=2)
    Cell.objects.filter(pk=bad.pk).update(error=0.05)
    sweep()
    assert refreshed(bad).decided == "limit"
    assert Run.objects.get().state == Run.State.FINISHED


@pytest.mark.parametrize("verb", [recompute_all_stale, control.delete_run, control.cancel_run])
def test_what_a_person_does_with_a_poisoned_run_succeeds(verb: object) -> None:
    bad = poisoned("calls", state=Run.State.RUNNING)
    make_trial(bad, "queued")
    assert callable(verb)
    verb(bad.run_id)
    sweep()
    assert (refreshed(bad).stale, bool(refreshed(bad).compute_error)) == (False, True)


def test_recompute_at_once_sets_aside_inside_a_transaction() -> None:
    bad = poisoned("output_tokens")
    recompute_immediately([bad.pk])
    assert refreshed(bad).compute_error


def test_tally_with_a_cell_set_aside_has_unknown_tokens() -> None:
    bad = poisoned("input_tokens")
    make_trial(make_cell(bad.config, "chat_only"), "pass")
    recompute_stale()
    (line,) = Cell.objects.order_by().values("run_id").annotate(**build_aggregates())
    for one in (tally_cells(Cell.objects.all()), build_tally(line)):
        assert (one.uncomputed_cells, one.passed, one.cost, compute_tokens_per_trial(one)) == (1, 2, None, None)


@pytest.mark.parametrize("cost", [1.7e308, float("nan"), float("inf"), -1.0])
def test_impossible_cost_counts_as_unknown(cost: float) -> None:
    cell = a_cell()
    for outcome in ("pass", "fail"):
        make_step(make_trial(cell, outcome, cost=cost, execution=2), execution=1, cost=cost)
    recompute_stale()
    cell = refreshed(cell)
    assert (cell.passed, cell.requests, cell.cost, cell.compute_error) == (1, 6, None, "")
