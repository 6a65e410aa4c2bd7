"""Trials by instance and side, and the pair of trials for the diff view."""

import pytest
from django.http import QueryDict

from tests.factories import make_cell, make_config, make_model, make_run, make_trial, recompute_stale_cells
from toolbench.lab.models import Case, CaseSet, Run, Trial
from toolbench.lab.results.compare.baseline import compare_with_baseline
from toolbench.lab.results.compare.instance_grid import InstanceGrid, get_instance_grid
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.results.trial_list.filter import TrialFilter, filter_trials

pytestmark = pytest.mark.django_db


def get_grid(run: Run, query: str = "") -> InstanceGrid:
    recompute_stale_cells()
    sides = f"run={run.pk}&a_model=vendor/m0&b_model=vendor/m1&c_model=vendor/m2&{query}"
    return get_instance_grid(compare_with_baseline(CompareQuery.from_query(QueryDict(sides))))


@pytest.fixture
def run() -> Run:
    """Make three models with three instances: all pass 1, two pass 2, and one fails one of two trials of 3."""
    run = make_run(instance_kind="drawn")
    for number, outcomes in enumerate(("pp pp pp", "pp pp pf", "pp ff pp")):
        cell = make_cell(make_config(run, make_model(f"vendor/m{number}")))
        for seed, letters in enumerate(outcomes.split(), start=1):
            for place, letter in enumerate(letters):
                outcome = "pass" if letter == "p" else "fail"
                make_trial(cell, outcome, instance_kind="drawn", instance_seed=seed, answer_hash=f"{letter}{place}")
    return run


def test_instance_grid_shows_only_instances_in_which_sides_differ(run: Run) -> None:
    grid = get_grid(run)
    assert [row.instance for row in grid.rows] == [2, 3]
    assert (grid.total, grid.differing, grid.equal_count) == (3, 2, 1)
    all_instances = get_grid(run, "instances=all")
    assert [row.instance for row in all_instances.rows] == [1, 2, 3]


def test_instance_grid_cell_has_counts_and_distinct_answers(run: Run) -> None:
    second, third = get_grid(run).rows
    cells = [(cell.k, cell.n, cell.distinct_answers, cell.success_extent) for cell in second.cells if cell]
    assert cells == [(2, 2, 2, "all"), (2, 2, 2, "all"), (0, 2, 2, "none")]
    assert [(cell.k, cell.success_extent) for cell in third.cells if cell] == [(2, "all"), (1, ""), (2, "all")]


def test_instance_grid_pair_has_a_failed_and_a_passed_trial(run: Run) -> None:
    (second, _) = get_grid(run).rows
    baseline, _, failing = second.cells
    assert baseline is not None
    assert baseline.trial_pair is None
    assert failing is not None
    assert failing.trial_pair is not None
    trials = [Trial.objects.select_related("config").get(pk=pk) for pk in failing.trial_pair]
    assert [trial.outcome for trial in trials] == ["fail", "pass"]
    assert [trial.config.model_name for trial in trials] == ["vendor/m2", "vendor/m0"]
    assert {trial.instance_seed for trial in trials} == {2}


@pytest.mark.parametrize("query", ["", "instances=all", "metric=delivered", "scenario=happy_path&upto=999999999"])
def test_instance_grid_cell_link_lists_exactly_its_trials(run: Run, query: str) -> None:
    cell = run.cells.get(config__model_name="vendor/m1")
    make_trial(cell, "na", instance_kind="drawn", instance_seed=3)
    Trial.objects.filter(pk=make_trial(cell, "", instance_kind="drawn", instance_seed=3).pk).update(state="queued")
    cells = [found for row in get_grid(run, query).rows for found in row.cells if found]
    assert len(cells) >= 6
    for found in cells:
        listed = filter_trials(TrialFilter.from_query(QueryDict(found.trials_query)))
        assert listed.count() == found.trial_count
        assert listed.filter(outcome="pass").count() == found.k
    assert max(found.trial_count for found in cells) == 4


def test_instance_grid_published_wording_is_one_row() -> None:
    run = make_run()
    for number, outcome in enumerate(("pass", "fail", "pass")):
        cell = make_cell(make_config(run, make_model(f"vendor/m{number}")))
        for _ in range(3):
            make_trial(cell, outcome)
    (row,) = get_grid(run).rows
    assert row.instance is None
    assert [cell and (cell.k, cell.n) for cell in row.cells] == [(3, 3), (0, 3), (3, 3)]


def test_instance_grid_side_without_the_instance_has_no_cell(run: Run) -> None:
    cell = run.cells.get(config__model_name="vendor/m2")
    make_trial(cell, "pass", instance_kind="drawn", instance_seed=9)
    row = get_grid(run, "instances=all").rows[-1]
    assert row.instance == 9
    assert [cell is None for cell in row.cells] == [True, True, False]


def test_instance_grid_test_case_is_one_row_beside_drawn_instances(run: Run) -> None:
    case = Case.objects.create(set=CaseSet.objects.create(name="Own"), slug="own-weather", title="Weather")
    for config, outcome in zip(run.configs.all(), ("pass", "fail", "pass"), strict=True):
        cell = make_cell(config, case.slug)
        for _ in range(3):
            make_trial(cell, outcome)
    rows = get_grid(run).rows
    assert [(row.scenario, row.instance) for row in rows] == [("happy_path", 2), ("happy_path", 3), (case.slug, None)]
    assert [cell and (cell.k, cell.n, cell.distinct_answers) for cell in rows[-1].cells] == [
        (3, 3, 3),
        (0, 3, 3),
        (3, 3, 3),
    ]
