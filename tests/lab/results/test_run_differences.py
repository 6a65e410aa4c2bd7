"""Runs of one configuration that differ by more than chance, and the cautions about them."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from django.test import Client

from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from tests.page_html import read_html
from toolbench.lab.models import Cell, Run
from toolbench.lab.results.compare.baseline import compare_with_baseline
from toolbench.lab.results.compare.comparison import get_comparison
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.results.decide.candidates import get_candidate_pool
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.run_differences import RunDifference, describe_run_differences, find_run_differences

pytestmark = pytest.mark.django_db


def make_runs(
    *counts: tuple[int, int], model: str = "vendor/a", scenario: str = "happy_path", **cell: Any
) -> list[Run]:
    """Make a run of the same configuration for each pair of passes and failures."""
    runs = []
    for passed, failed in counts:
        runs.append(make_run())
        config = make_config(runs[-1], make_model(model))
        make_trials(make_cell(config, scenario, **cell), **{"pass": passed, "fail": failed})
    return runs


def find_differences(*sides: Iterable[int], metric: str = "delivered") -> Sequence[RunDifference]:
    return find_run_differences(sides or [Cell.objects.values_list("pk", flat=True)], metric)


def test_find_run_differences_names_runs_beyond_chance() -> None:
    broken, repaired = make_runs((0, 12), (12, 0))
    make_runs((10, 2), (12, 0), model="vendor/b")
    (difference,) = find_differences()
    assert "vendor/a" in difference.label
    assert difference.runs_text == f"run {broken.pk} 0/12, run {repaired.pk} 12/12"


def test_find_run_differences_compares_equal_scenarios_only() -> None:
    make_runs((0, 12), scenario="happy_path")
    make_runs((12, 0), scenario="type_error_recovery")
    assert find_differences() == ()


def test_find_run_differences_counts_only_shared_scenarios() -> None:
    broken, repaired = make_runs((0, 12), (12, 0))
    for run, scenario in ((broken, "weather"), (repaired, "type_error_recovery")):
        make_trials(make_cell(run.configs.get(), scenario), **{"pass": 12})
    (difference,) = find_differences()
    assert difference.runs_text == f"run {broken.pk} 0/12, run {repaired.pk} 12/12"


def test_find_run_differences_corrects_for_comparisons() -> None:
    make_runs((4, 6), (10, 0))  # p = 0.011
    assert len(find_differences()) == 1
    for number in range(5):
        make_runs((5, 5), (5, 5), model=f"vendor/{number}")
    assert find_differences() == ()


def test_find_run_differences_of_many_runs_lists_lowest_and_highest() -> None:
    runs = make_runs((10, 2), (0, 12), (11, 1), (12, 0), (10, 2))
    (difference,) = find_differences()
    assert [run for run, _, _ in difference.runs] == [runs[1].pk, runs[3].pk]


@pytest.mark.parametrize(
    "cell",
    [{"control": True}, {"error": 0.05}, {"deterministic": True, "repeated_answers": 3}],
    ids=["control", "sequential", "repeated"],
)
def test_find_run_differences_leaves_out_cells_without_exact_test(cell: dict[str, Any]) -> None:
    make_runs((0, 12), (12, 0))
    Cell.objects.update(**cell)
    assert find_differences() == ()


def test_find_run_differences_does_not_compare_sides() -> None:
    make_runs((0, 12), (12, 0))
    first, second = ([pk] for pk in Cell.objects.values_list("pk", flat=True))
    assert find_differences(first, second) == ()


def test_describe_run_differences_counts_further_configurations() -> None:
    differences = [RunDifference(f"model {number}", (), ((1, 0, 9), (2, 9, 9))) for number in range(5)]
    sentences = describe_run_differences(differences)
    assert len(sentences) == 4
    assert sentences[0].startswith("model 0: its runs differ by more than chance (run 1 0/9, run 2 9/9).")
    assert sentences[-1] == "Runs of other configurations differ by more than chance too: 2."


def test_candidate_pool_cautions_about_runs_that_differ() -> None:
    broken, repaired = make_runs((0, 12), (12, 0))
    pool = get_candidate_pool(DecideQuery())
    text = f"its runs differ by more than chance (run {broken.pk} 0/12, run {repaired.pk} 12/12)"
    assert any(text in caution for caution in pool.cautions)
    assert "differ by more than chance" in pool.candidates[0].cautions[0]
    single = get_candidate_pool(DecideQuery(scope="runs", runs=(repaired.pk,)))
    assert not any("chance" in caution for caution in single.cautions)


def test_comparison_warns_about_runs_that_differ() -> None:
    make_runs((0, 12), (12, 0))
    make_runs((12, 0), model="vendor/b")
    make_runs((12, 0), model="vendor/c")
    pair = CompareQuery(a={"model": "vendor/a"}, b={"model": "vendor/b"})
    assert "vendor/a" in get_comparison(pair).warnings[0]
    three = CompareQuery(a={"model": "vendor/b"}, b={"model": "vendor/a"}, further=({"model": "vendor/c"},))
    assert "differ by more than chance" in compare_with_baseline(three).warnings[0]


def test_pages_show_caution_until_runs_are_chosen(owner_client: Client) -> None:
    broken, repaired = make_runs((0, 12), (12, 0))
    (other,) = make_runs((12, 0), model="vendor/b")
    for page in ("decide", "compare"):
        text = read_html(owner_client.get(f"/{page}/"))
        assert f"run {broken.pk} 0/12" in text, page
        assert f'name="run" value="{broken.pk}"' in text, page
        chosen = read_html(owner_client.get(f"/{page}/?run={repaired.pk}&run={other.pk}"))
        assert "differ by more than chance" not in chosen, page
        assert "12</b>/12" in chosen, page
