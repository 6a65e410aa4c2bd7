"""Cells of a run that lack trials, and the estimate of what is missing."""

import pytest

from tests.factories import make_cell, make_config, make_run, make_trial, make_trials, recompute_stale_cells
from toolbench.lab.models import Cell, Run
from toolbench.lab.results.run.missing_trials import get_missing_trials_page

pytestmark = pytest.mark.django_db


@pytest.fixture
def cells() -> tuple[Cell, Cell, Cell]:
    """Make three cells with 10, 4 and no trials."""
    config = make_config(make_run())
    full, part, empty = (make_cell(config, name) for name in ("happy_path", "weather", "long_arguments_guard"))
    make_trials(full, **{"pass": 10})
    make_trials(part, **{"pass": 2, "infra": 1, "queued": 1, "cancelled": 5})
    return full, part, empty


def test_missing_trials_page_lists_and_chooses_cells_below_the_target(cells: tuple[Cell, Cell, Cell]) -> None:
    _, part, empty = cells
    page = get_missing_trials_page(part.run_id)
    found = {(row.cell.pk, row.trial_count, row.missing_count, row.is_chosen) for row in page.rows}
    assert (page.target, found) == (10, {(part.pk, 4, 6, True), (empty.pk, 0, 10, True)})
    assert (page.total, page.chosen_cell_count) == (16, 2)


def test_missing_trials_page_totals_only_chosen_cells(cells: tuple[Cell, Cell, Cell]) -> None:
    page = get_missing_trials_page(cells[0].run_id, target=12, chosen={cells[0].pk})
    assert (len(page.rows), page.total, page.chosen_cell_count) == (3, 2, 1)
    assert get_missing_trials_page(cells[0].run_id, chosen=()).total == 0


def test_missing_trials_page_excludes_deleted_providers_and_na_cells(cells: tuple[Cell, Cell, Cell]) -> None:
    Cell.objects.filter(pk=cells[2].pk).update(stale=True)
    make_trials(cells[2], na=1)
    assert [row.cell.pk for row in get_missing_trials_page(cells[0].run_id).rows] == [cells[1].pk]
    provider = cells[0].config.provider
    assert provider is not None
    provider.delete()
    assert get_missing_trials_page(cells[0].run_id).rows == ()


def test_missing_trials_page_estimates_only_the_missing_trials() -> None:
    cell = make_cell(make_config(make_run(trials_per_cell=5)))
    for _ in range(5):
        make_trial(cell, "pass", requests=3, cost=0.01)
    recompute_stale_cells()
    estimate = get_missing_trials_page(cell.run_id, target=15).estimate
    assert estimate is not None
    assert estimate.requests is not None
    assert estimate.cost is not None
    assert (estimate.requests.high, round(estimate.cost.high, 6)) == (30, 0.1)


@pytest.mark.parametrize(
    ("fields", "words"), [({"imported": True}, "was imported"), ({"state": Run.State.CANCELLING}, "being cancelled")]
)
def test_missing_trials_page_of_a_closed_run_names_the_obstacle(fields: dict[str, object], words: str) -> None:
    assert words in get_missing_trials_page(make_run(**fields).pk).obstacle


def test_missing_trials_page_refuses_too_many_trials_at_once(cells: tuple[Cell, Cell, Cell]) -> None:
    config = cells[0].config
    for number in range(10):
        make_cell(config, f"scenario_{number}")
    page = get_missing_trials_page(cells[0].run_id, target=2000)
    assert "You can add 20,000 trials at once" in page.obstacle
