"""Several sides against one baseline, with simultaneous intervals."""

from typing import Any

import pytest
from django.http import QueryDict

from tests.factories import make_cell, make_config, make_model, make_run, make_trials, recompute_stale_cells
from toolbench.lab.models import Run
from toolbench.lab.results.compare.baseline import BaselineComparison, compare_with_baseline
from toolbench.lab.results.compare.comparison import get_comparison
from toolbench.lab.results.compare.export import SIDE_COLUMNS, export_sides
from toolbench.lab.results.compare.query import CompareQuery

pytestmark = pytest.mark.django_db


def read(query: str) -> CompareQuery:
    return CompareQuery.from_query(QueryDict(query))


def compare(query: str) -> BaselineComparison:
    return compare_with_baseline(read(query))


def make_sides(*counts: tuple[int, int], **cell: Any) -> Run:
    """Make a run with a model for each (passed, failed): m0, m1 …"""
    run = make_run()
    for number, (passed, failed) in enumerate(counts):
        config = make_config(run, make_model(f"vendor/m{number}"))
        make_trials(make_cell(config, **cell), **{"pass": passed, "fail": failed})
    recompute_stale_cells()
    return run


def name_sides(run: Run, *numbers: int) -> str:
    sides = (f"{letter}_model=vendor/m{number}" for letter, number in zip("abcdefghijkl", numbers, strict=False))
    return "&".join([f"run={run.pk}", *sides])


def test_sides_get_simultaneous_intervals_and_results() -> None:
    run = make_sides((39, 1), (40, 0), (38, 2), (21, 19))
    found = compare(name_sides(run, 0, 1, 2, 3))
    assert [row.result for row in found.rows] == ["baseline", "cannot tell", "cannot tell", "worse"]
    assert found.result_counts == {"worse": 1, "better": 0, "cannot tell": 2}
    assert found.comparisons == 3
    for row in found.others:
        assert row.compared is not None
        assert row.compared.difference is not None
        assert row.compared.difference.comparisons == 3
    alone = get_comparison(read(name_sides(run, 0, 3))).whole.difference
    together = found.rows[3].compared
    assert alone is not None
    assert together is not None
    assert together.difference is not None
    assert together.difference.value == alone.value
    assert together.difference.low < alone.low < alone.high < together.difference.high


def test_difference_of_one_side_is_that_of_the_pair() -> None:
    run = make_sides((30, 10), (39, 1))
    found, pair = compare(name_sides(run, 0, 1)), get_comparison(read(name_sides(run, 0, 1)))
    assert found.rows[1].compared == pair.whole
    assert found.rows[1].how == pair.how
    assert (found.required_trials, found.pool.group) == (pair.required_trials, pair.counts.group)


def test_result_that_one_comparison_shows_may_not_hold_among_many() -> None:
    run = make_sides((30, 10), (38, 2), *[(30, 10)] * 9)
    assert compare(name_sides(run, 0, 1)).rows[1].result == "better"
    assert compare(name_sides(run, *range(11))).rows[1].result == "cannot tell"


def test_pinned_side_becomes_the_baseline() -> None:
    run = make_sides((39, 1), (40, 0), (21, 19))
    query = read(name_sides(run, 0, 1, 2))
    pinned = compare(query.build_pin_query(2))
    assert pinned.names == ("vendor/m2", "vendor/m0", "vendor/m1")
    assert [row.result for row in pinned.others] == ["better", "better"]
    assert compare(query.build_remove_query(1)).names == ("vendor/m0", "vendor/m2")
    assert compare(query.select_pair(2).query()).names == ("vendor/m0", "vendor/m2")


def test_side_without_shared_scenarios_is_not_compared() -> None:
    run = make_sides((10, 0), (9, 1))
    other = make_config(run, make_model("vendor/m2"))
    make_trials(make_cell(other, "missing_workspace_id"), **{"pass": 5})
    found = compare(name_sides(run, 0, 1, 2))
    assert [row.result for row in found.others] == ["cannot tell", "nothing shared"]
    assert found.comparisons == 1


def test_side_that_shares_trials_with_the_baseline_is_not_compared() -> None:
    run = make_sides((10, 0), (9, 1))
    found = compare(f"run={run.pk}&a_model=vendor/m0&b_model=vendor/m1&c_profile=default")
    assert found.rows[2].result == "shares trials"
    assert found.rows[2].shared_trials == 10


def test_figures_are_of_the_trials_that_are_compared() -> None:
    run = make_sides((40, 0), (40, 0), (40, 0))
    config = run.configs.get(model_name="vendor/m1")
    make_trials(make_cell(config, "missing_workspace_id"), **{"fail": 40})
    recompute_stale_cells()
    first, second, third = compare(name_sides(run, 0, 1, 2)).rows
    assert second.rate.n == third.rate.n == 40
    for name in ("trials", "p50", "p95", "tokens_out", "cost"):
        assert getattr(second.figures, name) == getattr(third.figures, name)
    assert second.left_out == 1
    assert first.figures.p95 is not None
    assert first.figures.p95.is_open


def test_figures_count_no_pass_after_a_retry_as_a_success() -> None:
    run = make_sides((3, 1), (2, 2))
    run.trials.filter(config__model_name="vendor/m0", outcome="pass").update(errors_retried=1)
    first, second = compare(name_sides(run, 0, 1)).rows
    assert (first.figures.end_to_end_successes, second.figures.end_to_end_successes) == (0, 2)


def test_export_of_several_sides_has_a_row_for_each() -> None:
    run = make_sides((39, 1), (40, 0), (21, 19))
    table = export_sides(read(name_sides(run, 0, 1, 2)))
    assert table.columns == SIDE_COLUMNS
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [row["side"] for row in rows] == ["vendor/m0", "vendor/m1", "vendor/m2"]
    assert [row["result"] for row in rows] == ["baseline", "cannot tell", "worse"]
    assert (rows[0]["difference"], rows[2]["k"], rows[2]["baseline_k"]) == (None, 21, 39)


def test_export_of_two_sides_keeps_its_form() -> None:
    run = make_sides((39, 1), (40, 0))
    table = export_sides(read(name_sides(run, 0, 1)))
    assert table.columns[:3] == ("what", "scenario", "stratum")
    assert table.rows[0][0] == "whole"


def test_scope_leaves_out_scenarios_and_runs() -> None:
    run = make_sides((10, 0), (9, 1))
    for config in run.configs.all():
        make_trials(make_cell(config, "missing_workspace_id"), **{"fail": 10})
    named = name_sides(run, 0, 1)
    assert compare(named).rows[0].rate.n == 20
    assert compare(f"{named}&scenario=happy_path").rows[0].rate.n == 10
    assert compare(f"{named}&upto={run.pk - 1}").rows[0].rate.n == 0
    assert compare(f"{named}&before=2020-01-01").rows[0].rate.n == 0
