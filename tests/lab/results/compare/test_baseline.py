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


def parse_query(query: str) -> CompareQuery:
    return CompareQuery.from_query(QueryDict(query))


def compare_query(query: str) -> BaselineComparison:
    return compare_with_baseline(parse_query(query))


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


def test_compare_with_baseline_has_simultaneous_intervals() -> None:
    run = make_sides((39, 1), (40, 0), (38, 2), (21, 19))
    found = compare_query(name_sides(run, 0, 1, 2, 3))
    assert [row.result for row in found.rows] == ["baseline", "cannot tell", "cannot tell", "worse"]
    assert found.result_counts == {"worse": 1, "better": 0, "cannot tell": 2}
    assert found.comparisons == 3
    for row in found.others:
        assert row.compared is not None
        assert row.compared.difference is not None
        assert row.compared.difference.comparisons == 3
    single = get_comparison(parse_query(name_sides(run, 0, 3))).whole.difference
    simultaneous = found.rows[3].compared
    assert single is not None
    assert simultaneous is not None
    assert simultaneous.difference is not None
    assert simultaneous.difference.value == single.value
    assert simultaneous.difference.low < single.low < single.high < simultaneous.difference.high


def test_compare_with_baseline_of_one_side_equals_the_pair() -> None:
    run = make_sides((30, 10), (39, 1))
    found, pair = compare_query(name_sides(run, 0, 1)), get_comparison(parse_query(name_sides(run, 0, 1)))
    assert found.rows[1].compared == pair.whole
    assert found.rows[1].how == pair.how
    assert (found.required_trials, found.pool.group) == (pair.required_trials, pair.counts.group)


def test_compare_with_baseline_of_many_sides_widens_intervals() -> None:
    run = make_sides((30, 10), (38, 2), *[(30, 10)] * 9)
    assert compare_query(name_sides(run, 0, 1)).rows[1].result == "better"
    assert compare_query(name_sides(run, *range(11))).rows[1].result == "cannot tell"


def test_build_pin_query_makes_the_side_the_baseline() -> None:
    run = make_sides((39, 1), (40, 0), (21, 19))
    query = parse_query(name_sides(run, 0, 1, 2))
    pinned = compare_query(query.build_pin_query(2))
    assert pinned.names == ("vendor/m2", "vendor/m0", "vendor/m1")
    assert [row.result for row in pinned.others] == ["better", "better"]
    assert compare_query(query.build_remove_query(1)).names == ("vendor/m0", "vendor/m2")
    assert compare_query(query.select_pair(2).query()).names == ("vendor/m0", "vendor/m2")


def test_compare_with_baseline_skips_side_without_shared_scenarios() -> None:
    run = make_sides((10, 0), (9, 1))
    other = make_config(run, make_model("vendor/m2"))
    make_trials(make_cell(other, "missing_workspace_id"), **{"pass": 5})
    found = compare_query(name_sides(run, 0, 1, 2))
    assert [row.result for row in found.others] == ["cannot tell", "nothing shared"]
    assert found.comparisons == 1


def test_compare_with_baseline_skips_side_that_shares_trials() -> None:
    run = make_sides((10, 0), (9, 1))
    found = compare_query(f"run={run.pk}&a_model=vendor/m0&b_model=vendor/m1&c_profile=default")
    assert found.rows[2].result == "shares trials"
    assert found.rows[2].shared_trials == 10


def test_baseline_figures_count_only_compared_trials() -> None:
    run = make_sides((40, 0), (40, 0), (40, 0))
    config = run.configs.get(model_name="vendor/m1")
    make_trials(make_cell(config, "missing_workspace_id"), **{"fail": 40})
    recompute_stale_cells()
    first, second, third = compare_query(name_sides(run, 0, 1, 2)).rows
    assert second.rate.n == third.rate.n == 40
    for name in ("trials", "p50", "p95", "tokens_out", "cost"):
        assert getattr(second.figures, name) == getattr(third.figures, name)
    assert second.left_out == 1
    assert first.figures.p95 is not None
    assert first.figures.p95.is_open


def test_baseline_figures_exclude_passes_after_a_retry() -> None:
    run = make_sides((3, 1), (2, 2))
    run.trials.filter(config__model_name="vendor/m0", outcome="pass").update(errors_retried=1)
    first, second = compare_query(name_sides(run, 0, 1)).rows
    assert (first.figures.end_to_end_successes, second.figures.end_to_end_successes) == (0, 2)


def test_export_sides_of_several_sides_has_a_row_each() -> None:
    run = make_sides((39, 1), (40, 0), (21, 19))
    table = export_sides(parse_query(name_sides(run, 0, 1, 2)))
    assert table.columns == SIDE_COLUMNS
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [row["side"] for row in rows] == ["vendor/m0", "vendor/m1", "vendor/m2"]
    assert [row["result"] for row in rows] == ["baseline", "cannot tell", "worse"]
    assert (rows[0]["difference"], rows[2]["k"], rows[2]["baseline_k"]) == (None, 21, 39)


def test_export_sides_of_two_sides_has_the_comparison_columns() -> None:
    run = make_sides((39, 1), (40, 0))
    table = export_sides(parse_query(name_sides(run, 0, 1)))
    assert table.columns[:3] == ("what", "scenario", "stratum")
    assert table.rows[0][0] == "whole"


def test_compare_with_baseline_applies_scenario_run_and_date_filter() -> None:
    run = make_sides((10, 0), (9, 1))
    for config in run.configs.all():
        make_trials(make_cell(config, "missing_workspace_id"), **{"fail": 10})
    sides_query = name_sides(run, 0, 1)
    assert compare_query(sides_query).rows[0].rate.n == 20
    assert compare_query(f"{sides_query}&scenario=happy_path").rows[0].rate.n == 10
    assert compare_query(f"{sides_query}&upto={run.pk - 1}").rows[0].rate.n == 0
    assert compare_query(f"{sides_query}&before=2020-01-01").rows[0].rate.n == 0
