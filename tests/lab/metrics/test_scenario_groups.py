"""Cells by group of scenarios: no rate is computed over two groups."""

import pytest

from tests.factories import make_cell, make_config, make_run, make_trials
from toolbench.lab.metrics.scenario_groups import group_cells
from toolbench.lab.models import Run
from toolbench.lab.results.run.index import get_runs
from toolbench.lab.results.run.metrics import get_run_metrics
from toolbench.lab.results.run.page import get_run_page

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    """Return a run of one configuration with cells of a pack, of the default group and of a control."""
    run = make_run()
    config = make_config(run)
    make_trials(make_cell(config, "recovery_busy", scenario_group="recovery"), **{"fail": 4})
    make_trials(make_cell(config), **{"pass": 3})
    make_trials(make_cell(config, "chat_only"), **{"fail": 2})
    return run


def test_group_cells_puts_tools_first_and_adds_controls_to_it(run: Run) -> None:
    found = group_cells(run.cells.all())
    assert {name: [cell.scenario for cell in cells] for name, cells in found.items()} == {
        "tools": ["happy_path", "chat_only"],
        "recovery": ["recovery_busy"],
    }
    assert list(found) == ["tools", "recovery"]
    assert list(group_cells(run.cells.filter(control=True))) == ["control"]
    assert group_cells(()) == {}


def test_run_page_has_one_rate_per_group_and_none_over_several(run: Run) -> None:
    page = get_run_page(run.pk)
    assert [(line.group, line.answered.k, line.answered.n) for line in page.config_rows] == [
        ("tools", 3, 3),
        ("recovery", 0, 4),
    ]
    assert len(page.configs) == 1
    assert page.scenarios == ("recovery_busy", "happy_path", "chat_only")
    assert get_runs("own")[0].answered is None
    assert [column.group for column in get_run_metrics(run.pk).columns] == ["tools", "recovery"]
